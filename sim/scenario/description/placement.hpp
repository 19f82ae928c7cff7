// Which card each rank sits on, as a scenario states it.
#pragma once

#include <optional>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl::sim {

// "placement"
//   "packed"              rank r on card r: node by node (the default)
//   "round_robin"         the first card of each node, then the second of each, ...
//   "random"              cards drawn with the scenario's seed; {"random": 7} with its own
//   {"cards": [5, 2, 9]}  rank r on the r-th card of the list
struct Placement {
  enum class Kind : std::uint8_t { packed, round_robin, random, cards } kind = Kind::packed;
  std::optional<std::uint64_t> seed;
  std::vector<Card> cards;
  std::optional<json::Node> where;
};

}  // namespace gccl::sim
