// Ring reduce-scatter: every block's sum travels once around the ring and ends at its rank.
// Patarasuk and Yuan, JPDC 69 (2009), section 3; Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation
// 19 (2007), section 4 (bucket). n-1 steps, n-1 blocks sent per rank: bandwidth-optimal. Scratch: two blocks
// of the largest size.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// All serve reduce_scatter and reduce_scatterv.
Schedule ring_reduce_scatter_blocks(Call c, View v, Share mine);
Count ring_reduce_scatter_blocks_scratch(const Call& c, const View& v, Share mine);
Cost ring_reduce_scatter_blocks_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
