// Pairwise all-reduce: every rank gets its part of each other rank's vector directly, sums the parts, and sends the sum
// to each other rank directly. Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4, for the first half. 2(n-1)
// messages of which only the halves depend on each other, 2 (n-1)/n of the vector sent per rank: bandwidth-optimal with
// two latencies where many messages can be under way at once. Up to 256 ranks.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule pairwise_all_reduce(Call c, View v, Share mine);

}  // namespace gccl
