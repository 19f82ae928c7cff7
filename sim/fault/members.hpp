// Machines that run the fault protocol in virtual time, over datagrams, and are hurt as a timeline says. Each runs a
// small program, as an application would: work, agree that it is done, shrink where somebody failed, grow once.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "libgccl/fault/member.hpp"
#include "sim/fault/timeline.hpp"

namespace gccl::sim {

struct MembersOutcome {
  // What a promise of the protocol forbids; none, if all held.
  std::vector<std::string> violations;
  std::uint64_t trace = 0;  // hash of everything that was sent, received and decided, and when
  std::uint64_t events = 0, packets = 0;
  Nanos end = 0;
  unsigned done = 0, expelled = 0, without_quorum = 0;
  std::vector<std::uint64_t> sent;  // packets of each machine
  // By rank: when the first and the last of those that finished knew of its crash, after it; -1: nobody did.
  struct Detection {
    Rank rank;
    Nanos first = -1, last = -1;
  };
  std::vector<Detection> detections;
};

// Each machine does at first `rounds` rounds in which all wait for all. When any is interrupted, or when it has done
// them, they agree whether all have; where a rank has failed they shrink and begin anew. After the first epoch in which
// none has they grow, with those who wish to join, and after the next they are done.
//
// Found as violations: two decisions of one agreement that differ; flags that are not the AND of what those who take
// part said; a rank called failed that nothing was done to; an epoch that goes back; work done with a rank that was not
// there; ranks that finish in different epochs, or not at all though they could.
MembersOutcome play_members(const FaultTimeline& timeline, std::uint64_t seed, const fault::MemberRules& rules = {});

}  // namespace gccl::sim
