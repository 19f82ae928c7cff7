// Scenarios played by the engines that play without SimGrid, one point at a time; and runs with faults, on a few ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/run_campaign.hpp"
#include "tests/support/scenario.hpp"

namespace gccl::test {

inline const sim::Engines kSimulated{sim::run_model, sim::run_model};

inline sim::ScenarioResult play(const sim::Campaign& plan) {
  return sim::run_campaign(plan, kSimulated, {.jobs = 1, .progress = {}});
}
inline Json document_of(const Json& runs, const Json& more, std::uint64_t seed = 1) {
  sim::Campaign plan = plan_of(runs, more);
  plan.seed = seed;
  return play(plan).document;
}
inline Json rows_of(const Json& runs, const Json& more, std::uint64_t seed = 1) {
  return document_of(runs, more, seed)["runs"];
}
inline Json row_of(const Json& run, const Json& more) { return rows_of(Json::array({run}), more)[0]; }
inline double time_of(const Json& run, const Json& more) { return row_of(run, more)["time_us"]; }

// Ranks on a cluster of nodes with NICs: on one node, and on cards of several.
inline const Json kPod = {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 8}};
inline Json on_cards(const std::vector<Card>& cards, const std::string& cluster = "dgx-h100-superpod-2048") {
  return {
      {"cluster", "../topologies/" + cluster + ".json"}, {"ranks", cards.size()}, {"placement", {{"cards", cards}}}};
}
inline const Json kTwoNodes = on_cards({0, 8});

inline Json faulty(const Json& faults, const Json& more = Json::object()) {
  return with({{"collective", "allreduce"}, {"bytes", "16KiB"}, {"algorithms", "ring"}, {"faults", faults}}, more);
}

// Why the first run is refused, from the pointer within it on.
inline std::string complaint_of_run(const Json& runs, const Json& more) {
  const std::string text = complaint(runs, more);
  return text.starts_with("/runs/0") ? text.substr(7) : text;
}
inline std::string why(const Json& faults, const Json& more = Json::object()) {
  return complaint_of_run(faulty(faults, more), kPod);
}

}  // namespace gccl::test
