// A step from its workload to its result, "gccl/step/1" (docs/parallelism.md).
#pragma once

#include <set>

#include "sim/llm/pricing.hpp"

namespace gccl::sim::llm {

struct PlayedStep {
  LlmWorkload workload;
  std::shared_ptr<Expansion> expansion;
  StepGraph graph;
  StepCosts costs;
  Timeline timeline;
  nlohmann::json result;
  std::vector<nlohmann::json> runs = {};                    // what was played, each communication alone
  std::shared_ptr<const std::set<std::string>> names = {};  // what tasks of traces are called
};

// The tasks of each stage and queue, in the order in which they begin. What ranks of traces carry out together is on
// each of them.
std::vector<std::vector<std::uint32_t>> tasks_by_row(const PlayedStep& s);

// Expands, plays each distinct communication alone, composes the step, plays those concurrently that were in flight at
// the same time, and composes it again. Throws json::InputError and what Pricer::play throws.
std::unique_ptr<PlayedStep> play_step(const LlmWorkload& w, Pricer& pricer);

// The workload with one change, "KEY=VALUE": KEY is a path ("parallel.tensor", "model.experts.load") or "algorithm" (of
// all collectives that the algorithm serves); VALUE is a number, true, false, null or a text. Several changes are
// joined by commas. Throws json::InputError, which names `option`.
nlohmann::json changed(const nlohmann::json& document, const std::string& change, std::string_view option);
// Where "layer_us" states the time of a layer, it states that of one way to cut it up: throws json::InputError too
// where `other`, read from what came of the change, has other work in a layer, and the change states no other time.
void check_layer_times(const LlmWorkload& w, const LlmWorkload& other, const std::string& change);

}  // namespace gccl::sim::llm
