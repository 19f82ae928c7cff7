// What a library of NCCL's kind chooses for a call by itself, where its rules are known and are not NCCL's own model:
// the "choices" of a parameter set.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/cluster.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

struct LibraryChoice {
  Collective kind{};
  Rank nodes_min = 1, nodes_max = std::numeric_limits<Rank>::max();
  Count bytes_max = std::numeric_limits<Count>::max();  // as nccl-tests count them
  const Algorithm* algorithm = nullptr;                 // of all that serve the collective
  std::string protocol;                                 // empty: whichever the planner takes

  bool is_for(Collective k, Rank nodes, Count bytes) const {
    return k == kind && nodes >= nodes_min && nodes <= nodes_max && bytes <= bytes_max;
  }
};
// The first one that is for a call decides.
using LibraryChoices = std::vector<LibraryChoice>;

// Throws json::InputError, also where one names a protocol that the set, whose protocols have these names, does not
// have, and where no call is left for one.
LibraryChoices read_choices(const json::Node& list, const std::vector<std::string_view>& protocols);

// Null where the cluster's parameters say nothing of such a call.
const LibraryChoice* library_choice(const Cluster& cluster, Collective kind, Rank nodes, Count bytes);

}  // namespace gccl
