// Direct broadcast: the root sends the vector to each other rank, next neighbour first.
// Chan, Heimlich, Purkayastha and van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms. n-1 steps
// at the root, 1 elsewhere; one latency where messages overlap, but the root's port carries n-1 vectors.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule direct_broadcast(Call c, View v, Share mine);
Cost direct_broadcast_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
