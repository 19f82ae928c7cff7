// Which card each rank sits on.
#pragma once

#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "sim/scenario/description/placement.hpp"

namespace gccl::sim {

Placement read_placement(const json::Node& node);

// cards[r] for each of `ranks` ranks, each card at most once. Requires ranks <= cluster.cards(). Throws
// json::InputError when a listed card does not exist or too few are listed.
std::vector<Card> place(const Placement& placement, const Cluster& cluster, Rank ranks, std::uint64_t seed);

}  // namespace gccl::sim
