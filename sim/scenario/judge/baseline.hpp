// The same point elsewhere: in another run of the scenario, or in a stored result.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/scenario/plan/plan.hpp"

namespace gccl::sim {

// The point of run `run` with the same cluster, ranks, engine, size and algorithm; where both are the selector's choice
// and it chose otherwise there, that choice.
std::optional<std::size_t> same_point(const Plan& plan, std::size_t run, const Point& point);

// The row among a stored result's rows that has the same head (play.hpp: row_head), but for the run's position; where
// the point is the selector's choice and no row has its algorithm, the choice there. Null when there is none.
const nlohmann::json* same_row(const nlohmann::json& rows, const nlohmann::json& head, bool automatic);

// "; the nearest has shares 8 instead of 1": what tells the most similar row from `head`. Empty when there are no rows.
std::string nearest_row(const nlohmann::json& rows, const nlohmann::json& head);

}  // namespace gccl::sim
