// Ring all-reduce: a ring reduce-scatter, then a ring all-gather.
// Patarasuk and Yuan, JPDC 69 (2009), section 3. 2(n-1) steps, 2 (n-1)/n of the vector sent per rank:
// bandwidth-optimal.
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

Schedule ring_all_reduce(Group g, Region in, Region out);
Cost ring_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
