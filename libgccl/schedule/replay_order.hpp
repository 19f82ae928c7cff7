// The order in which a transport's fast path carries out a whole schedule at once, one step after the other.
//
// Its sends are buffered and wait for nobody, so each goes as early as it can: the peers get theirs before this rank
// begins to wait. That saves a turn of the scheduler per message where ranks share a processor. `gccl verify` proves
// every algorithm in this order too.
#pragma once

#include <optional>
#include <vector>

#include "libgccl/schedule/schedule.hpp"

namespace gccl {

inline constexpr std::size_t kReplayStepsMax = 512;
// To one peer. A fast path holds as many while nobody receives, so that no send of a replay waits.
inline constexpr std::size_t kReplayMessagesMax = 24;

// The schedule's steps with every send before the steps that it does not conflict with. The order of sends among each
// other, and of all other steps, stays. Nothing where there are too many steps, or messages to one peer.
std::optional<std::vector<Step>> replay_order(Schedule schedule);

}  // namespace gccl
