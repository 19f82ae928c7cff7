// Direct barrier: every rank signals each other rank, then awaits the signal of each.
// n-1 signals sent per rank, none of which waits for another: one latency, for few ranks, against ceil(log2 n)
// latencies and signals of dissemination. Up to 32 ranks. Only share 0 has steps.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule direct_barrier(Call c, View v, Share mine);
Cost direct_barrier_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
