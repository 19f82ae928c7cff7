// "exactly_once": no operation is lost, and none has different results on different survivors.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

Judgement judge_exactly_once(const Expectation&, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& f = faults_of(rows, i);
  const auto lost = f.at("lost").get<std::uint64_t>(), doubled = f.at("doubled").get<std::uint64_t>();
  return {fmt::format("{} lost, {} doubled for {}", lost, doubled, rows.name(i)), lost + doubled == 0,
          double(lost + doubled)};
}

}  // namespace

extern const Check exactly_once_check{
    .key = "exactly_once",
    .read = [](const json::Node& value, const ScenarioRun& run, Expectation&) { demand_true(value, run); },
    .demand = [](const Expectation&) -> std::string { return "every operation exactly once"; },
    .judge = judge_exactly_once};

}  // namespace gccl::sim
