// Hierarchical all-gather: blocks cross nodes once for each node, along rails, and are handed round inside the node
// while the next ones come in. Two-level rings as in Traeff, "Efficient allgather for regular SMP-clusters",
// EuroPVM/MPI 2006, and in Mamidala, Vishnu and Panda, same proceedings; one ring per rail instead of one leader per
// node. Uniform nodes of g ranks: nodes-1 steps across (nodes-1 blocks sent per rank), nodes*(g-1) steps inside (as
// many blocks). On nodes of unlike size a rail also carries the blocks of places beyond the rails, which fold onto it
// first.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule hierarchical_all_gather(Call c, View v, Share mine);
Cost hierarchical_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
