// Bruck's all-gather: recursive doubling for any number of ranks, over cyclic distances.
// Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8 (1997), section 4 (concatenation). ceil(log2 n) steps, n-1
// blocks sent per rank, one message per step also for slices: blocks collect in scratch in the order rank, rank+1, ...,
// and those of a step move to the output during the next. Scratch: n blocks.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule bruck_all_gather(Call c, View v, Share mine);
Count bruck_all_gather_scratch(const Call& c, const View& v, Share mine);
Cost bruck_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
