// Rings over any group, the parts from which ring collectives and hierarchies are built.
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
#pragma once

#include "libgccl/schedule/group.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// Reduces each of g.size near-equal parts of a vector: afterwards the member at position i has part i of `out`
// completely reduced; the other parts of `out` are partial sums. `in` and `out` may be the same region.
// n-1 steps, (n-1)/n of the vector sent per rank.
Schedule ring_reduce_scatter(Group g, Region in, Region out);
// Completes a vector of which the member at position i holds part i. n-1 steps, (n-1)/n of the vector per rank.
Schedule ring_all_gather(Group g, Region x);

}  // namespace gccl
