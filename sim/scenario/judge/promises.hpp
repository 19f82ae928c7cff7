// What no run with faults may break, whatever the scenario expects.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace gccl::sim {

// Adds an object as evaluate() gives it, for each row that breaks one.
void add_promises(const std::vector<nlohmann::json>& rows, nlohmann::json* expectations);

}  // namespace gccl::sim
