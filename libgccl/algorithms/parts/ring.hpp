// Rings over any group, the parts from which ring collectives and hierarchies are built.
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
#pragma once

#include "libgccl/schedule/channel.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// This rank's place in a ring and the ranks beside it.
struct Ring {
  Rank size, rank;
  Rank next, before;
  template <class Order>  // a Group or a ChannelOrder
  Ring(const Order& g) : size(g.size), rank(g.rank), next(g[g.ahead(1)]), before(g[g.behind(1)]) {}
  Rank behind(Rank k) const { return Group{.size = size, .rank = rank}.behind(k); }
};

// Reduces each of n near-equal parts of a vector: afterwards the member at position i has part i of `out`
// completely reduced; the other parts of `out` are partial sums. `in` and `out` may be the same region.
// n-1 steps, (n-1)/n of the vector sent per rank.
Schedule ring_reduce_scatter(Ring g, Region in, Region out);
inline Schedule ring_reduce_scatter(Group g, Region in, Region out) { return ring_reduce_scatter(Ring(g), in, out); }
// Completes a vector of which the member at position i holds part i. n-1 steps, (n-1)/n of the vector per rank.
Schedule ring_all_gather(Ring g, Region x);
inline Schedule ring_all_gather(Group g, Region x) { return ring_all_gather(Ring(g), x); }

}  // namespace gccl
