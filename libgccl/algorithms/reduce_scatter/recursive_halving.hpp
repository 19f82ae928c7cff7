// Recursive halving reduce-scatter, for any number of ranks.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4; other n than powers of two by circulant rounds
// (halving.hpp). ceil(log2 n) rounds, n-1 blocks sent per rank. Scratch: n blocks. Slices of blocks are first packed
// side by side.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule recursive_halving_reduce_scatter(Call c, View v, Share mine);
Count recursive_halving_reduce_scatter_scratch(const Call& c, const View& v, Share mine);
Cost recursive_halving_reduce_scatter_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
