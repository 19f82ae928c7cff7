// Direct reduce: every rank sends its vector to the root, which sums them in the order of ranks 0, 1, ..., n-1.
// Chan, Heimlich, Purkayastha and van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms. n-1 steps
// at the root, 1 elsewhere; one latency where messages overlap, but the root's port carries n-1 vectors and the root
// combines all of them. Scratch: one vector at a root above rank 1, in place only.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule direct_reduce(Call c, View v, Share mine);
Count direct_reduce_scratch(const Call& c, const View& v, Share mine);
Cost direct_reduce_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
