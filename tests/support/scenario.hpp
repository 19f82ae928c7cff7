// Scenarios for tests: documents in memory, on a shipped box of eight cards.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/scenario/judge/evaluate.hpp"
#include "sim/scenario/read/reader.hpp"
#include "sim/scenario/result/row.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"

namespace gccl::test {

using Json = nlohmann::json;

inline Json read_json(const std::filesystem::path& file) { return Json::parse(read_text(file)); }

inline sim::Scenario scenario_of(const Json& document) {
  return sim::read_scenario(json::Node::parse(document.dump(), kRoot / "scenarios/test.json"));
}

inline Json whole(const Json& runs) {
  return {{"schema", "gccl/scenario/1"}, {"name", "test"}, {"cluster", "../topologies/pcie-box.json"}, {"runs", runs}};
}

// As gccl run does before it simulates anything.
inline sim::Campaign plan_and_check(const Json& document) {
  sim::Campaign plan = sim::make_campaign(scenario_of(document), {});
  sim::check_expectations(*plan.scenario, sim::row_heads(plan));
  return plan;
}

inline sim::Campaign plan_of(const Json& runs, const Json& more = Json::object()) {
  Json document = whole(runs);
  document.update(more);
  return plan_and_check(document);
}

// The message of the InputError that planning these runs gives; "accepted" when there is none.
inline std::string refusal(const Json& runs, const Json& more = Json::object()) {
  try {
    plan_of(runs, more);
  } catch (const json::InputError& e) {
    return e.what();
  }
  return "accepted";
}

// The same without the scenario's file.
inline std::string complaint(const Json& runs, const Json& more = Json::object()) {
  const std::string text = refusal(runs, more);
  const std::size_t at = text.find("test.json: ");
  return at == std::string::npos ? text : text.substr(at + 11);
}

inline const Json kRing = {{"collective", "allreduce"}, {"bytes", 64}, {"algorithms", "ring"}};

inline Json with(Json run, const Json& more) {
  run.update(more);
  return Json::array({run});
}

}  // namespace gccl::test
