// Pairwise all-to-all and all-to-all-v: in each step every rank sends to one other rank and receives from one, never
// two from the same (turns.hpp). Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), on all-to-all of long messages. n-1
// steps, every block sent once, straight to its place: bandwidth-optimal, any n. Scratch: the share's whole input, in
// place only, where it is saved before it is overwritten.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// All serve alltoall and alltoallv. No rank is asked for another rank's counts.
Schedule pairwise_all_to_all(Call c, View v, Share mine);
Count pairwise_all_to_all_scratch(const Call& c, const View& v, Share mine);
Cost pairwise_all_to_all_cost(const Call& c, const View& v, const CostModel& m);

// The size of a block for closed forms, elements: count, or in alltoallv without places the mean of n blocks spread
// over all distances. The same on every rank, as every choice between algorithms must be. O(n) for alltoallv.
double mean_block(const Call& c, Rank ranks);

}  // namespace gccl
