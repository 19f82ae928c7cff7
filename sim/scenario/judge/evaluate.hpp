// Holds what came out against what a scenario expects.
#pragma once

#include "sim/scenario/description/scenario.hpp"
#include "sim/scenario/judge/contest.hpp"

namespace gccl::sim {

// `heads` of the campaign's points (result/row.hpp). Throws json::InputError where some expectation selects none of
// them, so that it could never fail, or what a point is to be compared with lacks that point.
void check_expectations(const Scenario& scenario, const std::vector<nlohmann::json>& heads);

// One object {pointer, text, found, ok} per expectation; it names the worst of the rows it selects.
nlohmann::json evaluate(const Scenario& scenario, const std::vector<nlohmann::json>& rows);

}  // namespace gccl::sim
