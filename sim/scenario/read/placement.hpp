// Which card each rank sits on.
#pragma once

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

Placement read_placement(const json::Node& node);

// cards[r] for each of `ranks` ranks, each card at most once. Requires ranks <= cluster.cards(). Throws
// json::InputError when a listed card does not exist or too few are listed.
std::vector<Card> place(const Placement& placement, const Cluster& cluster, Rank ranks, std::uint64_t seed);

}  // namespace gccl::sim
