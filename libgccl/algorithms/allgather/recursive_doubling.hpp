// Recursive-doubling all-gather: what a rank holds doubles in every exchange, over doubling distances.
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005),
// on all-gather. With n = 2^k + e, the first 2e ranks act as e pairs: the odd one hands its block to the even one
// before and gets the rest after. log2(n) steps and n-1 blocks sent per rank for a power of two, else floor(log2 n) + 2
// steps and at most 3(n-1) blocks.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// Position i of the power of two stands for the ranks doubling_begin(e, i) .. doubling_begin(e, i + 1) - 1, and the
// first of them speaks for them.
inline Rank doubling_begin(Rank e, Rank i) { return i < e ? 2 * i : i + e; }

Schedule recursive_doubling_all_gather(Call c, View v, Share mine);
Cost recursive_doubling_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
