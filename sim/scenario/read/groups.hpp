// "groups", and the communicators that they make of a world.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/schedule/layout.hpp"
#include "sim/scenario/description/groups.hpp"

namespace gccl::sim {

Groups read_groups(const json::Node& node);

struct SimulatedCommunicator {
  std::vector<Rank> members;  // world ranks by communicator rank; empty: the whole world in order
  std::shared_ptr<const Layout> layout;
  // Equal for communicators that look alike to the planner: as many ranks, on as many nodes and cut up by them alike.
  // Numbered from 0.
  std::size_t shape = 0;

  Rank ranks() const { return layout->ranks(); }
  Rank world(Rank r) const { return members.empty() ? r : members[r]; }
};

// The communicators of a world in which rank w sits on cards[w]. Throws json::InputError when the world cannot be cut
// so.
std::vector<SimulatedCommunicator> communicators(const Groups& groups, const Cluster& cluster,
                                                 const std::vector<Card>& cards);

}  // namespace gccl::sim
