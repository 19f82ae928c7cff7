// The standard fold of a group of any size onto a power of two.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.5.
#pragma once

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// An all-reduce over the survivors, whose number is a power of two.
using SurvivorsAllReduce = Schedule (*)(Numbering, Region in, Region out);

// All-reduce over any group: each even position of the first 2*(n - 2^floor(log2 n)) adds its vector to the next one's,
// stays out, and gets the result at the end. 2 more steps and 1 more vector sent per such rank; none for a power of
// two.
Schedule folded_all_reduce(Group g, Region in, Region out, SurvivorsAllReduce core);
// What the fold adds.
Cost fold_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
