// How far choices made without simulating are from the best that was found.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gccl::sim {

// Adds to a "gccl/tuning/1" document "regret", that of GCCL's planner, and "others", that of NCCL's and Open MPI's
// default rules, and of the table that was checked, if any: mean, 95th percentile and worst over the grid's cells,
// those of bisections aside, since these lie where choices are hardest.
void add_regret(nlohmann::json& document);

// By how much the cell's choice of "planner", "nccl", "openmpi" or "table" takes longer than the best, in percent; NaN
// where there is none or it was not simulated.
double regret_percent(const nlohmann::json& cell, const std::string& whose);

// "allreduce 64 KiB, 16 ranks".
std::string place_text(const nlohmann::json& cell);

}  // namespace gccl::sim
