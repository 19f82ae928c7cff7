// "dead": the ranks of which all survivors have heard that they have failed, exactly.
#include <set>

#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_dead(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  std::set<std::int64_t> seen;
  for (const json::Node& item : value.items(0, kRanksMax))
    if (!seen.insert(item.integer(0, kRanksMax - 1)).second) item.fail("appears twice");
  e.subject = json::format_value(nlohmann::json(seen));
}

void match_dead(const Expectation& e, const RunRanks& ranks) {
  for (const json::Node& item : e.where.items()) demand_rank(item, ranks);
}

Judgement judge_dead(const Expectation& e, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& dead = faults_of(rows, i).at("dead");
  return {fmt::format("{} for {}", rank_list(dead), rows.name(i)), json::format_value(dead) == e.subject, 1};
}

}  // namespace

extern const Check dead_check{
    .key = "dead",
    .read = read_dead,
    .demand = [](const Expectation& e) { return fmt::format("reported dead are {}", e.subject); },
    .judge = judge_dead,
    .match = match_dead};

}  // namespace gccl::sim
