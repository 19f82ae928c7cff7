#include "libgccl/schedule/oracle.hpp"

#include <algorithm>
#include <cassert>

namespace gccl {

using enum Collective;

Oracle::Oracle(const Call& call, Rank ranks, std::uint64_t seed)
    : call_(call), ranks_(ranks), seed_(splitmix::hash(seed)) {
  if (call.kind != allreduce && call.kind != reduce) return;
  sums_.assign(call.count, 0);
  for (Rank r = 0; r < ranks; ++r) {
    const Element b = base(r, 0);
    for (Count k = 0; k < call.count; ++k) sums_[k] += at(b, k);
  }
}

// Writes one block to the front of `rest` and moves on behind it.
void Oracle::fill(std::span<Element>& rest, Rank from, Rank block, Count count) const {
  assert(count <= rest.size());
  const Element b = base(from, block);
  for (Count k = 0; k < count; ++k) rest[k] = at(b, k);
  rest = rest.subspan(count);
}

void Oracle::input(Rank r, std::span<Element> out) const {
  const Count count = call_.count;
  switch (call_.kind) {
    case allreduce:
    case reduce:
    case allgather:
    case gather:
    case sendrecv: fill(out, r, 0, count); break;
    case broadcast:
      if (r == call_.root) fill(out, r, 0, count);
      break;
    case scatter:
      for (Rank b = 0; r == call_.root && b < ranks_; ++b) fill(out, r, b, count);
      break;
    case reduce_scatter:
    case alltoall:
    case alltoallv:
      for (Rank b = 0; b < ranks_; ++b) fill(out, r, b, call_.between(r, b));
      break;
    case barrier: break;
  }
  assert(out.empty());
}

void Oracle::output(Rank r, std::span<Element> out) const {
  const Count count = call_.count;
  switch (call_.kind) {
    case reduce:
      if (r != call_.root) break;
      [[fallthrough]];
    case allreduce:
      assert(out.size() == count);
      std::copy(sums_.begin(), sums_.end(), out.begin());
      return;
    case reduce_scatter:
      assert(out.size() == count);
      std::fill(out.begin(), out.end(), 0);
      for (Rank p = 0; p < ranks_; ++p) {
        const Element b = base(p, r);
        for (Count k = 0; k < count; ++k) out[k] += at(b, k);
      }
      return;
    case broadcast: fill(out, call_.root, 0, count); break;
    case scatter: fill(out, call_.root, r, count); break;
    case gather:
      if (r != call_.root) break;
      [[fallthrough]];
    case allgather:
      for (Rank p = 0; p < ranks_; ++p) fill(out, p, 0, count);
      break;
    case alltoall:
    case alltoallv:
      for (Rank p = 0; p < ranks_; ++p) fill(out, p, r, call_.between(p, r));
      break;
    case sendrecv: fill(out, r ? r - 1 : ranks_ - 1, 0, count); break;
    case barrier: break;
  }
  assert(out.empty());
}

}  // namespace gccl
