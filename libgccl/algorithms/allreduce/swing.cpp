// Swing all-reduce: a reduce-scatter and an all-gather whose partners swing to and fro, +1, -1, +3, -5, +11, ... ranks
// away (swing.hpp), so that messages stay short-range on rings and tori. Ranks beyond a power of two are folded
// (folded.hpp).
#include "libgccl/algorithms/parts/swing.hpp"

#include <cstdlib>

#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/folded.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/bunch.hpp"

namespace gccl {
namespace {

// The part that a rank is left with, chosen so that every step's parts lie next to each other: partners of step s must
// agree in the s highest bits and differ in the one after. All distances from step s on are alike modulo 2^(s+1), so an
// even rank stays, over those steps, with the even ranks that have its s+1 lowest bits (and the odd ones swing_distance
// away).
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

Schedule swing_all_reduce(Group g, Region in, Region out) { return folded_all_reduce(g, in, out, swing); }

Cost swing_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  const Cost busiest = 2 * p.channels() * bytes * p.swing_ns_per_byte();  // there and back
  if (p.model().links_alone) return fold_cost(n, bytes, p) + busiest;
  const unsigned steps = unsigned(std::countr_zero(std::bit_floor(n)));
  Bunch bunch(p.channels(), p.model().exchange_gap_ns(), 1);
  const auto part = [bytes](unsigned s) { return bytes / double(Count(2) << s); };
  const auto hop = [&](unsigned s) {
    const Count distance = Count(std::abs(swing_distance(s)));
    const Hop* known = p.swing(s);
    return known                    ? *known
           : n != std::bit_floor(n) ? p.survivors(distance)
           : s == 0                 ? p.at(distance)
                                    : p.shift(distance);
  };
  const bool folds = !std::has_single_bit(n);
  Cost end = bunch.begin();
  if (folds) end = bunch.combine(bunch.pass(end, p.at(1), bytes), p.model().combine(bytes));
  for (unsigned s = 0; s < steps; ++s)
    end = bunch.combine(bunch.pass(end, hop(s), part(s)), p.model().combine(part(s)));
  for (unsigned s = steps; s-- > 0;) end = bunch.pass(end, hop(s), part(s));
  if (folds) end = bunch.pass(end, p.at(1), bytes);
  return std::max(busiest, end);
}

constexpr Algorithm allreduce_swing = {
    .name = "swing",
    .kind = Collective::allreduce,
    .source =
        "De Sensi, Bonato, Saam, Hoefler, \"Swing: short-cutting rings for higher bandwidth allreduce\", NSDI 2024, "
        "section 3",
    .steps = "2 log2 n; other n: 2 floor(log2 n) + 2",
    .bytes = "2 (n-1)/n V; other n: (3 - 2/p) V",
    .make = all_reduce<swing_all_reduce>,
    .cost = vector_cost<swing_all_reduce_cost>,
    .at_once = true,
    .rounds = true,
};

}  // namespace gccl
