// Which ranks form a communicator: the whole world, or equal groups of it, or listed ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "libgccl/base/limits.hpp"
#include "libgccl/cluster/cluster.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl::sim {

// "groups". All groups of a task run their collective concurrently.
//   {"size": k}               consecutive ranks: 0..k-1, k..2k-1, ...          (tensor parallel)
//   {"stride": s}             ranks s apart: 0, s, 2s, ...; 1, s+1, ...         (data parallel across)
//   {"size": k, "stride": s}  k ranks s apart, within blocks of k*s ranks
//   [[0, 3], [1, 2]]          exactly these, in this order; the other ranks take no part
struct Groups {
  Rank size = 0, stride = 0;  // 0: not stated
  std::vector<std::vector<Rank>> lists;
  std::optional<json::Node> where;  // absent: the whole world

  bool whole() const { return !where; }
};

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
