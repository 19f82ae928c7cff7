// "no_false_alarm": nobody was called failed to whom nothing was done.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

Judgement judge_false_alarm(const Expectation&, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& alarms = faults_of(rows, i).at("false_alarms");
  return {fmt::format("{} wrongly called failed for {}", rank_list(alarms), rows.name(i)), alarms.empty(),
          double(alarms.size())};
}

}  // namespace

extern const Check false_alarm_check{
    .key = "no_false_alarm",
    .read = [](const json::Node& value, const ScenarioRun& run, Expectation&) { demand_true(value, run); },
    .demand = [](const Expectation&) -> std::string { return "no false alarm"; },
    .judge = judge_false_alarm};

}  // namespace gccl::sim
