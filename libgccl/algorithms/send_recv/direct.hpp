// Send-receive along the ring of ranks: each sends its vector to the next and gets the one of the rank before
// (the point-to-point pattern of pipeline parallelism; nccl-tests' sendrecv). 1 step, the whole vector sent per rank.
// Scratch: the vector, in place only, where it is saved before it is overwritten.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule direct_send_recv(Call c, View v, Share mine);
Count direct_send_recv_scratch(const Call& c, const View& v, Share mine);
Cost direct_send_recv_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
