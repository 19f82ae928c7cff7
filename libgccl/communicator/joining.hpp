// How a process becomes a rank of a job that runs, and what its members look at before they admit it. The members' side
// is Recovery::grow().
#pragma once

#include "libgccl/communicator/world.hpp"

namespace gccl {

// While all are connected, a rank that is silent for so long counts as lost.
inline constexpr std::int64_t kConnectMs = 10000;

// Waits for as long as GCCL_JOIN_TIMEOUT_MS says, until the members admit this process.
Status join_world(const GCCL_Config* config, std::unique_ptr<CommunicatorCore>* out);

// The introduction of a process that asks, and of a member that compares it with its own: how many ranks there will be
// is not known yet.
Introduction at_the_door(const World& world);

}  // namespace gccl
