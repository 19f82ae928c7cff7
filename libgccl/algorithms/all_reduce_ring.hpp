// Ring all-reduce: a ring reduce-scatter, then a ring all-gather.
// Patarasuk and Yuan, JPDC 69 (2009). 2(n-1) steps, 2 (n-1)/n of the vector sent per rank: bandwidth-optimal.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule ring_all_reduce(Call c, View v, Share mine);
Cost ring_all_reduce_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
