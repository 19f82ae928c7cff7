// What a result says, in sentences: the terminal's table and the HTML report both print these.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace gccl::sim {

// By how much the closed form missed the simulated time of a row of "gccl/result/1": predicted / simulated - 1, in
// percent. Absent where a row has no prediction or took no time.
std::optional<double> prediction_error_percent(const nlohmann::json& row);
constexpr double kPredictionErrorMax = 25;  // percent; beyond this a finding says so

// A list of {cluster, subject, headline, notes}: one for each group of rows that may be compared with each other (same
// cluster, collective, label, element type and root; every engine, algorithm, share and lane). The headline says which
// algorithm to use where, what it reaches at the largest size, and which links limit it there. Notes: how good the
// planner's choices were, where closed forms are far from the simulation, where engines differ. Never throws: missing
// or strange fields of the result are left out.
nlohmann::json findings(const nlohmann::json& result);

}  // namespace gccl::sim
