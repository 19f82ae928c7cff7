// Bruck's all-to-all: in step k every block whose way has bit k set moves on by 2^k ranks, all in one message.
// Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8 (1997), section 3 (index, radix 2). ceil(log2 n) steps of at
// most floor(n/2) blocks each: latency-optimal, at log2(n)/2 times the bytes of pairwise and two copies of each block
// per step. Any n. Scratch: n + 2 floor(n/2) blocks.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule bruck_all_to_all(Call c, View v, Share mine);
Count bruck_all_to_all_scratch(const Call& c, const View& v, Share mine);
Cost bruck_all_to_all_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
