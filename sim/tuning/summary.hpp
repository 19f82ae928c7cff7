// A sweep in words, for the terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gccl::sim {

std::string tuning_text(const nlohmann::json& document);

// Where a planner's choice takes at least 1 % longer than the best, the most first: {"at", "whose", "now", "best",
// "percent"}; of GCCL's planner, or "nccl", "openmpi".
nlohmann::json improvements(const nlohmann::json& document, const std::string& whose, std::size_t most);

}  // namespace gccl::sim
