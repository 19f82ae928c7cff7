// Chain reduce: a vector travels from the last position to the root and is summed on the way.
// Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing 10 (2007), section 3
// (pipeline). n-1 steps; every rank but the root sends one vector. With shares it is a pipeline that uses every port
// fully. Scratch: one vector except at both ends.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule chain_reduce(Call c, View v, Share mine);
Count chain_reduce_scratch(const Call& c, const View& v, Share mine);
Cost chain_reduce_cost(const Call& c, const View& v, const CostModel& m);
Cost chain_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s);

}  // namespace gccl
