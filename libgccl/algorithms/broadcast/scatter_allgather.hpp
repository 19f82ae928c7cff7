// Van de Geijn's broadcast for long vectors: a binomial scatter of n parts, then a ring all-gather.
// Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective communication library", SHPCC 1994;
// Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience", Concurrency
// and Computation 19 (2007), section 7. ceil(log2 n) + n-1 steps; the root sends 2 (n-1)/n of the vector, other ranks
// at most 3/2. The ring stops before the root, which has everything.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule scatter_allgather_broadcast(Call c, View v, Share mine);
Cost scatter_allgather_broadcast_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
