// Rabenseifner's reduce: recursive halving reduce-scatter, then a binomial gather of the parts to the root.
// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, section 3; Thakur et al., IJHPCA 19
// (2005), section 4.5. 2 ceil(log2 n) rounds, at most 2 (n-1)/n of the vector sent per rank; other n than powers of two
// use circulant rounds instead of a fold (halving.hpp). Scratch: one vector on every rank but the root.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule rabenseifner_reduce(Call c, View v, Share mine);
Count rabenseifner_reduce_scratch(const Call& c, const View& v, Share mine);
Cost rabenseifner_reduce_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
