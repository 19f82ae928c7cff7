// Neighbour-exchange all-gather: neighbours swap pairs of blocks, to the left and to the right in turns.
// Chen, Zhang, Zhang and Yuan, "Performance evaluation of allgather algorithms on terascale Linux cluster with fast
// Ethernet", HPC Asia 2005. n even: n/2 steps (one block in the first, two in the others), n-1 blocks sent per rank,
// each rank talks to two neighbours only. For odd n, where neighbours do not pair up, it is the ring.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule neighbor_exchange_all_gather(Call c, View v, Share mine);
Cost neighbor_exchange_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
