// Recursive doubling all-reduce: whole vectors are exchanged with the ranks 1, 2, 4, ... away.
// Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005),
// section 4.5. log2 n steps, log2 n vectors sent per rank: the fewest steps, for small vectors. Other n are folded
// (folded.hpp).
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

Schedule recursive_doubling_all_reduce(Group g, Region in, Region out);
Cost recursive_doubling_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
