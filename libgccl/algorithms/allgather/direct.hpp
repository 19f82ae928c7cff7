// Direct all-gather: every rank sends its block to each other rank, in the order of turns.hpp.
// Chan, Heimlich, Purkayastha and van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms. n-1 steps
// that depend on no earlier ones, n-1 blocks sent per rank: bandwidth-optimal, and one latency where messages overlap.
// For few ranks and for crossbars.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// All serve allgather and allgatherv.
Schedule direct_all_gather(Call c, View v, Share mine);
Cost direct_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
