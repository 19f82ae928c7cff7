// Tree barrier: signals rise through a binomial tree to rank 0 and come down again.
// Mellor-Crummey and Scott, "Algorithms for scalable synchronization", ACM TOCS 9 (1991), section 3.4, with a binomial
// tree. 2 ceil(log2 n) steps on the longest way; 2(n-1) signals in all, against n ceil(log2 n) of dissemination. Any n.
// Only share 0 has steps.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule tree_barrier(Call c, View v, Share mine);
Cost tree_barrier_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
