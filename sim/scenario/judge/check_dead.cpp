// "dead": the ranks of which all survivors have heard that they have failed, exactly.
#include <algorithm>

#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_dead(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  nlohmann::json ranks = nlohmann::json::array();
  for (const json::Node& item : value.items(0, kRanksMax)) ranks.push_back(item.integer(0, kRanksMax - 1));
  std::sort(ranks.begin(), ranks.end());
  e.subject = json::format_value(ranks);
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
    .judge = judge_dead};

}  // namespace gccl::sim
