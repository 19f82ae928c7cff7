// Linear scatter: the root sends every rank its block.
// Chan, Heimlich, Purkayastha and van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms. n-1 steps
// at the root, 1 elsewhere; the root sends n-1 blocks. No scratch.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule linear_scatter(Call c, View v, Share mine);
Cost linear_scatter_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
