// Hierarchical all-to-all and all-to-all-v: inside the node, each rank first hands every block to the member on the
// rail of its target, so that one message per node pair and rail crosses the network. NCCL 2.12's PXN, and Traeff and
// Rougier, "MPI collectives and datatypes for hierarchical all-to-all communication", EuroMPI/ASIA 2014. Uniform nodes
// of g ranks: g-1 steps inside (nodes blocks each), nodes-1 across (g blocks each): g times fewer messages on the
// network than pairwise and the same bytes there, for two copies and a hop inside per block. Works on nodes of unlike
// size: places beyond the rails share the rail of place % rails, whose member hands over what came for them. One node,
// or one rank on every node: the same as pairwise. Scratch: twice the largest of the rank's input, its rail's load and
// what its rail brings to the node.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// All serve alltoall and alltoallv.
Schedule hierarchical_all_to_all(Call c, View v, Share mine);
// Ranks must know what others send, which a call with places need not tell.
bool hierarchical_all_to_all_fits(const Call& c, const View& v);
Count hierarchical_all_to_all_scratch(const Call& c, const View& v, Share mine);
Cost hierarchical_all_to_all_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
