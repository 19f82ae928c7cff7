#include "libgccl/algorithms/parts/displacement.hpp"

#include <algorithm>

#include "libgccl/cost/pipelined.hpp"

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
  const Region block{at_.buffer(), at_.offset() + offset_, extent(peer)};
  return packed_ ? block : share_.in(block);
}

Region Displacement::run(Rank first, Rank length) {
  const Region a = (*this)[first], b = (*this)[first + length - 1];
  return {a.buffer(), a.offset(), b.offset() + b.count - a.offset()};
}

double mean_block(const Call& c, Rank ranks) {
  if (c.kind != Collective::alltoallv || c.places) return double(c.count);
  double total = 0;
  for (Rank r = 0; r < ranks; ++r) total += double(c.between(r, Rank((2 * Count(r) + 1) % ranks)));
  return total / ranks;
}

double heaviest_block(const Call& c, Rank ranks, bool incoming) {
  if (c.kind != Collective::alltoallv || c.places || ranks < 2) return double(c.count);
  const auto block = [&](Rank r, Rank peer) { return double(incoming ? c.between(peer, r) : c.between(r, peer)); };
  constexpr Rank kLookedAt = 4;
  Rank heaviest = 0;
  double most = 0;
  for (Rank r = 0; r < ranks; ++r) {
    double some = 0;
    for (Count k = 0; k < kLookedAt; ++k) some += block(r, Rank((r + 1 + k * ranks / kLookedAt) % ranks));
    if (some > most) most = some, heaviest = r;
  }
  double total = 0;
  for (Rank peer = 0; peer < ranks; ++peer)
    if (peer != heaviest) total += block(heaviest, peer);
  return total / (ranks - 1);
}

Cost busiest_rank_cost(const Call& c, const View& v, const CostModel& m, bool bundled) {
  const Rank n = v.all.size;
  if (c.kind != Collective::alltoallv || c.places || n < 2) return 0;
  const Cost in = fan_in(v, m, m.bytes(heaviest_block(c, n, true))),
             out = fan_out(v, m, m.bytes(heaviest_block(c, n, false)));
  return bundled ? std::max(in - fan_in(v, m, 0), out - fan_out(v, m, 0)) : std::max(in, out);
}

}  // namespace gccl
