#include "libgccl/algorithms/allreduce/swing.hpp"

#include <cstdlib>

#include "libgccl/algorithms/parts/folded.hpp"

namespace gccl {
namespace {

// The distance of step s: sum of (-2)^i for i <= s.
std::int64_t rho(unsigned s) {
  const std::int64_t power = std::int64_t(2) << s;
  return (1 - (s % 2 ? power : -power)) / 3;
}

// The part that a rank is left with, chosen so that every step's parts lie next to each other: partners of step s must
// agree in the s highest bits and differ in the one after. All distances from step s on are alike modulo 2^(s+1), so an
// even rank stays, over those steps, with the even ranks that have its s+1 lowest bits (and the odd ones rho away).
Rank part_of(Rank n, Rank rank) {
  const unsigned steps = unsigned(std::countr_zero(n));
  const Rank even = rank % 2 ? swing_partner(n, rank, steps - 1) : rank;
  Rank part = rank & 1;
  for (unsigned s = 0; s + 1 < steps; ++s) part |= (even >> (s + 1) & 1) << (steps - 1 - s);
  return part;
}

Schedule swing(Numbering g, Region in, Region out) {
  const Rank n = g.size;
  if (n == 1) {
    co_yield copy(in, out);
    co_return;
  }
  const unsigned steps = unsigned(std::countr_zero(n));
  const Rank part = part_of(n, g.rank);
  for (unsigned s = 0; s < steps; ++s) {
    const Rank length = n >> (s + 1), keep = part & ~(length - 1), give = keep ^ length;
    const Region have = s == 0 ? in : out;
    const Rank peer = g[swing_partner(n, g.rank, s)];
    co_yield send(peer, have.parts(give, length, n));
    co_yield recv_reduce(peer, have.parts(keep, length, n), out.parts(keep, length, n));
  }
  for (unsigned s = steps; s-- > 0;) {
    const Rank length = n >> (s + 1), keep = part & ~(length - 1), take = keep ^ length;
    const Rank peer = g[swing_partner(n, g.rank, s)];
    co_yield send(peer, out.parts(keep, length, n));
    co_yield recv(peer, out.parts(take, length, n));
  }
}

}  // namespace

// Even ranks go rho(s) up, odd ones down.
Rank swing_partner(Rank n, Rank rank, unsigned s) {
  return Rank(std::int64_t(rank) + (rank % 2 ? -rho(s) : rho(s))) & (n - 1);
}

Schedule swing_all_reduce(Group g, Region in, Region out) { return folded_all_reduce(g, in, out, swing); }

Cost swing_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  Cost total = fold_cost(n, bytes, p);
  const unsigned steps = unsigned(std::countr_zero(std::bit_floor(n)));
  for (unsigned s = 0; s < steps; ++s) {
    const double part = bytes / double(Count(2) << s);
    const Count distance = Count(std::abs(rho(s)));
    const Hop* known = p.swing(s);
    const Hop hop = known                    ? *known
                    : n != std::bit_floor(n) ? p.survivors(distance)
                    : s == 0                 ? p.at(distance)
                                             : p.shift(distance);
    total += 2 * hop(part) + p.model().combine(part);
  }
  return total;
}

}  // namespace gccl
