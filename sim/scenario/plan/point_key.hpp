// What a point's result depends on, as a short text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

// The digests of the program with the libraries that it has loaded, and of the files that a cluster is read from.
std::string program_digest();
std::string cluster_digest(const std::filesystem::path& cluster);

// For each point of the campaign a text that is equal only where everything that its row depends on is: the run as the
// scenario states it (but for what it expects), the cluster's files with those that they name, the ranks' cards, the
// seed, the engine, the point's sizes and algorithms, and the program with the libraries that it has loaded.
std::vector<std::string> point_keys(const Campaign& campaign);

}  // namespace gccl::sim
