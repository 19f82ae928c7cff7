// Rabenseifner's all-reduce: recursive halving reduce-scatter, then recursive doubling all-gather.
// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, section 3; Thakur et al., IJHPCA 19
// (2005), section 4.5. 2 ceil(log2 n) rounds, 2 (n-1)/n of the vector sent per rank. The largest exchanges are between
// neighbours when n is a power of two; other n use circulant rounds instead of a fold (halving.hpp).
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

Schedule rabenseifner_all_reduce(Group g, Region in, Region out);
Cost rabenseifner_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
