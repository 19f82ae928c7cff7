// Rings and chains: ranks whose messages share nothing, without a common clock.
#pragma once

#include <optional>

#include "sim/engine/workload.hpp"

namespace gccl::sim {

// What run_model gives, to the nanosecond, or nothing where the workload is of another kind: one operation of one lane,
// in which each rank sends to one other and hears from one other, all messages are long or none is, and no link is on
// two ranks' ways. A message's times follow from its two ranks' alone then, and ranks may be played in any order as
// long as each takes what happens to it in the order of time: a Kahn process network (Kahn, "The semantics of a simple
// language for parallel programming", IFIP 1974). So some neighbours are played for some dozens of steps while they are
// in the cache, rather than thousands of ranks for one.
std::optional<Outcome> run_unshared(const Workload& workload);

}  // namespace gccl::sim
