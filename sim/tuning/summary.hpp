// A sweep in words, for the terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/tuning/counterparts.hpp"

namespace gccl::sim {

// Without the control characters that names from files may hold.
std::string tuning_text(nlohmann::json document);

// "leonardo"; "leonardo, with leonardo-mpi" where the parameter set is not its own.
std::string cluster_text(const nlohmann::json& document);

// Where a choice takes at least 1 % longer than what a file would bring, the most first: {"at", "now", "now_us",
// "best", "best_us", "percent"}. Whose it is: "planner" for GCCL's, "nccl", "openmpi". NCCL cuts calls up by itself
// whatever a file says: both times are of plans as the planner cuts them up, and of another algorithm or protocol.
nlohmann::json improvements(const nlohmann::json& document, const std::string& whose, const Exporting& how,
                            std::size_t most);

}  // namespace gccl::sim
