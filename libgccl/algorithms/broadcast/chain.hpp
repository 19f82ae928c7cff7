// Chain broadcast: the vector travels from the root through all positions.
// Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing 10 (2007), section 3
// (pipeline). n-1 steps; every rank but the last sends one vector. With shares it is a pipeline that uses every port
// fully.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule chain_broadcast(Call c, View v, Share mine);
Cost chain_broadcast_cost(const Call& c, const View& v, const CostModel& m);
Cost chain_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s);

}  // namespace gccl
