// "slowest": the rank that holds up the others is found.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_slowest(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  if (run.engines != std::vector<Engine>{Engine::flow}) value.fail("is found by the engine \"flow\" alone");
  e.limit = double(value.integer(0, kRanksMax - 1));
}

Judgement judge_slowest(const Expectation& e, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& found = faults_of(rows, i).at("slowest");
  const bool ok = !found.is_null() && found.get<double>() == e.limit;
  return {
      fmt::format("{} for {}", found.is_null() ? "nobody" : fmt::format("rank {}", found.get<Rank>()), rows.name(i)),
      ok, 1};
}

}  // namespace

extern const Check slowest_check{
    .key = "slowest",
    .virtual_time = true,
    .read = read_slowest,
    .demand = [](const Expectation& e) { return fmt::format("the slowest is rank {}", e.limit); },
    .judge = judge_slowest,
    .match = [](const Expectation& e, const RunRanks& ranks) { demand_rank(e.where, ranks); }};

}  // namespace gccl::sim
