// Holds what came out against what a scenario expects.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/scenario/plan/plan.hpp"

namespace gccl::sim {

// Throws json::InputError when some expectation selects no point of the plan: it could never fail.
void check_expectations(const Plan& plan);

// One object {pointer, text, found, ok} per expectation; it names the worst of the results it selects. `rows` are the
// points' results, in the plan's order.
nlohmann::json evaluate(const Plan& plan, const std::vector<nlohmann::json>& rows);

// Points that compete: same run, world, engine and size; they lie next to each other. Returns the index after the last
// one that competes with `first`.
std::size_t competitors_end(const Plan& plan, std::size_t first);

}  // namespace gccl::sim
