// The same point elsewhere: in another run of the scenario, or in a stored result.
#pragma once

#include <optional>
#include <vector>

#include "sim/scenario/judge/contest.hpp"

namespace gccl::sim {

// The row of run `run` with the same cluster, ranks, engine, size and algorithm; where both are the planner's choice
// and it chose otherwise there, that choice.
std::optional<std::size_t> same_point(const ResultRows& rows, std::size_t run, const ResultRow& row);

// A stored result's rows, all objects, under the names that rows have now: earlier results call chunks "shares" and
// channels "lanes". Stored rows are read through this, so that nothing else knows the earlier names.
nlohmann::json with_present_names(nlohmann::json rows);

// The rows among a stored result's that are about the same point: how the call is cut up belongs to it where a run
// states it, and not where the planner decided, unless some are cut up alike. Where `row` is the planner's choice and
// none has its algorithm, the choice there. Mostly one; several where the runs differ in what a row does not show.
std::vector<const nlohmann::json*> same_rows(const nlohmann::json& stored, const nlohmann::json& row);

// "; the nearest has chunks 8 instead of 1": how the most similar stored row differs from `row`. Empty when there are
// none.
std::string nearest_row(const nlohmann::json& stored, const nlohmann::json& row);

}  // namespace gccl::sim
