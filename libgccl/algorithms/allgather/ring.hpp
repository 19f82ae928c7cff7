// Ring all-gather: every block travels once around the ring.
// Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
// Concurrency and Computation 19 (2007), on bucket algorithms. n-1 steps, n-1 blocks sent per rank: bandwidth-optimal.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// All serve allgather and allgatherv.
Schedule ring_all_gather(Call c, View v, Share mine);
Cost ring_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
