// Direct exchanges over any group: every member sends each other one its part, in the order of turns.hpp.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4. n-1 steps that depend on no earlier ones, (n-1)/n of the
// vector sent per rank.
#pragma once

#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// Reduces each of g.size near-equal parts: afterwards the member at position i has part i of the sum of all members'
// `in` in part i of `out`; the rest of `out` is not touched. `in` and `out` may be the same region.
Schedule pairwise_reduce_scatter_over(Group g, Turns turns, Region in, Region out);
// The same for blocks of any length: `mine` gets the sum of all members' blocks for this one.
Schedule pairwise_reduce_scatter_over(Group g, Turns turns, Displacement in, Region mine);
// Completes a vector of which the member at position i holds part i, again by direct messages.
Schedule pairwise_all_gather_over(Group g, Turns turns, Region x);

// The cost of the reduce-scatter with parts of that size, and of both with vectors of so many bytes.
Cost pairwise_reduce_scatter_cost(Rank n, double part, const Paths& p);
Cost pairwise_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
