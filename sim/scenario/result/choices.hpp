// How good the planner's choices were.
#pragma once

#include "sim/scenario/judge/contest.hpp"

namespace gccl::sim {

// Sets "fastest" of each row: the fastest of those that compete and completed; on a tie the planner's choice, else the
// earlier one. Returns "choices" of "gccl/result/1": how far each choice that completed was from the fastest.
nlohmann::json mark_fastest(std::vector<nlohmann::json>& rows);

}  // namespace gccl::sim
