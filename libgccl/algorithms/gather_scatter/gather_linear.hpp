// Linear gather: every rank sends its block to the root.
// Chan, Heimlich, Purkayastha and van de Geijn, Concurrency and Computation 19 (2007), on simple
// algorithms. n-1 steps at the root, 1 elsewhere; one block sent per rank. No scratch: bandwidth-optimal, and
// latency-optimal where messages to one rank overlap.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule linear_gather(Call c, View v, Share mine);
Cost linear_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
