// What a result of "gccl/step/1" says of every step, be it described or recorded in traces.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/llm/timeline.hpp"

namespace gccl::sim::llm {

// Which step, on what, and how long it took.
nlohmann::json step_head(const LlmWorkload& w, const Cluster& cluster, std::string_view phase, double step_us);

struct StageRow {
  StageTime time;
  ByKind<double> sent_bytes{};
  nlohmann::json memory;
};
// Adds "stages", of each kind what the stages spend on it, and what the step's time goes to, as means over them.
void add_stages(const std::vector<StageRow>& stages, nlohmann::json& result);

// Adds to a call of "traffic" how an operation of the scenario's carried it out.
void add_operation(nlohmann::json& call, const nlohmann::json& operation);

// Adds "expectations" and "ok".
void add_expectations(const LlmWorkload& w, nlohmann::json& result);

}  // namespace gccl::sim::llm
