// What messages that are all on their way at once take of a cluster's links, for the closed forms' cost models.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "libgccl/cluster/messages.hpp"

namespace gccl {

// Groups of members by card; each at once.
using Groups = std::vector<std::vector<Card>>;
inline std::size_t largest(const Groups& groups) {
  std::size_t most = 0;
  for (const auto& g : groups) most = std::max(most, g.size());
  return most;
}

// After a far message comes a near one: one after the other, shifts take the mean latency, while the narrowest link
// keeps all waiting.
inline Hop shift_of(const Messages& shift) { return {shift.mean(false).alpha_ns, shift.busiest_ns()}; }
inline RingLoads ring_of(const Messages& m, Rank channels = 1) {
  return {.channels = channels,
          .next = m.mean(true),
          .next_alone = m.mean(false),
          .busiest = shift_of(m),
          .together = m.mean(true),
          .slowest = m.alone(),
          .chain = {},
          .back = {},
          .way = {}};
}

// Of the ring whose hops are so many messages from `first` on.
RingLoads::Way way_round(const Messages& m, std::size_t first, std::size_t hops);
LinkLoads::Next next_of(const Part& cluster, const Groups& groups);

// Member i of each group sends to member i + d.
Messages shifted(const Part& cluster, const Groups& groups, std::size_t d);

// A binomial tree's messages in each group, all down from its first member, or all up to it.
LinkLoads::Binomial binomial_of(const Part& cluster, const Groups& groups, bool up);

// Worked out when a form asks for them. `begin`: where each node of the only group begins, whose members follow each
// other node by node, and the end of the last; without elements each group counts as one node.
LinkLoads loads_of(std::shared_ptr<const Part> cluster, std::shared_ptr<const Groups> groups,
                   std::shared_ptr<const std::vector<Rank>> begin);

// Recursive doubling's all-gather: each position of the power of two waits for what it has and for its partner's.
Hop doubling_way(const Part& cluster, const std::vector<Card>& cards);

}  // namespace gccl
