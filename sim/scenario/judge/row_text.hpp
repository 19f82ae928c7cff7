// Rows of "gccl/result/1" in messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario/description/scenario.hpp"

namespace gccl::sim {

// "allreduce ring, 1 MiB, 8 ranks of DGX H100 (model)": the point of a row or head, for messages.
std::string describe(const Scenario& scenario, const nlohmann::json& head);

// For what a row of real ranks fails in: "; this machine was up to 120 ms late with what was due". Empty for others.
std::string lateness(const nlohmann::json& row);

}  // namespace gccl::sim
