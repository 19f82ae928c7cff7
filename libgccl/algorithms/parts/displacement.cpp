#include "libgccl/algorithms/parts/displacement.hpp"

#include <algorithm>

namespace gccl {

void Displacement::seek(Rank peer) {
  if (call_.places && !packed_) {  // in place the output's places are the input's
    offset_ = call_.places(call_.table, rank_, peer, outgoing_ && !call_.in_place);
    peer_ = peer;
    return;
  }
  if (!has_counts(call_.kind)) {
    offset_ = peer * extent(peer);
    peer_ = peer;
    return;
  }
  if (peer < peer_ / 2) {
    peer_ = 0;
    offset_ = 0;
  }
  while (peer_ < peer) offset_ += extent(peer_++);
  while (peer_ > peer) offset_ -= extent(--peer_);
}

Region Displacement::operator[](Rank peer) {
  seek(peer);
  const Region block{at_.buffer, at_.offset + offset_, extent(peer)};
  return packed_ ? block : share_.in(block);
}

Region Displacement::run(Rank first, Rank length) {
  const Region a = (*this)[first], b = (*this)[first + length - 1];
  return {a.buffer, a.offset, b.offset + b.count - a.offset};
}

double mean_block(const Call& c, Rank ranks) {
  if (c.kind != Collective::alltoallv || c.places) return double(c.count);
  double total = 0;
  for (Rank r = 0; r < ranks; ++r) total += double(c.between(r, Rank((2 * Count(r) + 1) % ranks)));
  return total / ranks;
}

}  // namespace gccl
