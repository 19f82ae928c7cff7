// Scenarios from JSON.
#pragma once

#include "sim/scenario/description/scenario.hpp"

namespace gccl::sim {

// Reads and checks a scenario file. Throws json::InputError.
Scenario read_scenario(const std::filesystem::path& file);
// The same for one that was read already; the clusters' paths are relative to node.file().
Scenario read_scenario(const json::Node& node);

// One task of a run: "collective" and what describes it. Inside a sequence it has one size and one "algorithm".
Task read_task(const json::Node& node, bool in_sequence);

}  // namespace gccl::sim
