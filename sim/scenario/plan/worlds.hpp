// The clusters of a scenario with ranks on their cards.
#pragma once

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

// One world for each cluster and number of ranks. Throws json::InputError: a file that does not exist, more ranks than
// cards.
using LoadCluster = std::function<std::shared_ptr<const Cluster>(const std::filesystem::path&)>;
std::vector<SimulatedWorld> make_worlds(const Scenario& scenario, std::uint64_t seed, const LoadCluster& load);

}  // namespace gccl::sim
