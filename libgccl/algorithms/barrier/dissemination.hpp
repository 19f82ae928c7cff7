// Dissemination barrier: in round k every rank signals the rank 2^k after it.
// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 17 (1988). ceil(log2 n) rounds, one
// signal sent per rank and round, any n. Only share 0 has steps.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule dissemination_barrier(Call c, View v, Share mine);
Cost dissemination_barrier_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
