// Pairwise reduce-scatter: every rank sends each other rank its part directly, in n-1 steps (turns.hpp).
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4. n-1 steps that depend on no earlier ones, (n-1)/n of the
// vector sent per rank. For crossbars such as NVSwitch, where many messages can be under way at once.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {

// Reduces each of g.size near-equal parts: afterwards the member at position i has part i of the sum of all members'
// `in` in part i of `out`; the rest of `out` is not touched. `in` and `out` may be the same region.
Schedule pairwise_reduce_scatter_over(Group g, Turns turns, Region in, Region out);
// Completes a vector of which the member at position i holds part i, again by direct messages.
Schedule pairwise_all_gather_over(Group g, Turns turns, Region x);
// Both together.
Cost pairwise_cost(Rank n, double bytes, const Paths& p);

// Both serve reduce_scatter and reduce_scatterv.
Schedule pairwise_reduce_scatter(Call c, View v, Share mine);
Cost pairwise_reduce_scatter_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
