// Direct all-reduce: every rank sends its whole vector to each other rank and sums what it gets.
// n-1 vectors sent per rank, none of which waits for another: one latency, for small vectors on few ranks. Sums are
// formed in the order of ranks 0, 1, ..., n-1, so all ranks end with the same bits. Up to 32 ranks.
// Scratch: n-1-r vectors on rank r > 0, which come before their turn, and in place one more on all ranks but rank 1.
// None with 2 ranks.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule direct_all_reduce(Call c, View v, Share mine);
Count direct_all_reduce_scratch(const Call& c, const View& v, Share mine);
Cost direct_all_reduce_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
