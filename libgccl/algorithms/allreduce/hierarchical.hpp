// Hierarchical all-reduce: reduce-scatter inside the node, all-reduce across the nodes for each place on a node (rail),
// all-gather inside the node. Each byte crosses the network as often as an all-reduce between the nodes alone needs.
// Traeff, Hunold, "Decomposing MPI collectives for exploiting multi-lane communication", IEEE Cluster 2020, section
// III. With p ranks per node and k nodes: the steps of both parts added; with the default parts (ring inside,
// Rabenseifner across) 2(p-1) + 2 ceil(log2 k) steps and 2 (pk-1)/(pk) of the vector sent per rank.
//
// Nodes of unlike size: with r ranks on the smallest one, the rank at place j >= r of its node first adds its vector to
// the rank at place j mod r, stays out, and gets the result last.
#pragma once

#include "libgccl/algorithms/parts/two_level.hpp"

namespace gccl {

Schedule hierarchical_all_reduce_by(const Inner* inner, const Outer* outer, Call c, View v, Share mine);
Cost hierarchical_all_reduce_by_cost(const Inner& inner, const Outer& outer, const Call& c, const View& v,
                                     const CostModel& m);

// Table rows; any two parts go together.
template <const Inner& inner, const Outer& outer>
Schedule hierarchical_all_reduce(Call c, View v, Share mine) {
  return hierarchical_all_reduce_by(&inner, &outer, c, v, mine);
}
template <const Inner& inner, const Outer& outer>
Cost hierarchical_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  return hierarchical_all_reduce_by_cost(inner, outer, c, v, m);
}

}  // namespace gccl
