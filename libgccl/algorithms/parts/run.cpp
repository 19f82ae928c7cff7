#include "libgccl/algorithms/parts/run.hpp"

namespace gccl {

Schedule exchange(Rank to, Run give, Rank from, Run take) {
  const Count sends = give.messages(), receives = take.messages();
  for (Count i = 0; i < std::max(sends, receives); ++i) {
    if (i < sends) co_yield send(to, give.message(i));
    if (i < receives) co_yield recv(from, take.message(i));
  }
}

Schedule unpack(Region packed, Run to) {
  const Count messages = to.messages();
  for (Count i = 0; i < messages; ++i) {
    const Region piece = to.message(i);
    co_yield copy(packed.sub(to.before(i) * to.blocks.count, piece.count), piece);
  }
}

Schedule pack(Run from, Region packed) {
  const Count messages = from.messages();
  for (Count i = 0; i < messages; ++i) {
    const Region piece = from.message(i);
    co_yield copy(piece, packed.sub(from.before(i) * from.blocks.count, piece.count));
  }
}

}  // namespace gccl
