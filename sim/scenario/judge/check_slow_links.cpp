// "slow_links": the pairs of ranks between which links were found slow, in either direction, exactly.
#include <algorithm>
#include <set>

#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

using Pairs = std::set<std::pair<std::int64_t, std::int64_t>>;

std::string text(const Pairs& pairs) { return json::format_value(nlohmann::json(pairs)); }

void read_slow_links(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_looks(value, run);
  Pairs pairs;
  for (const json::Node& item : value.items(0, kRanksMax)) {
    const auto ends = item.items(2, 2);
    const std::int64_t a = ends[0].integer(0, kRanksMax - 1), b = ends[1].integer(0, kRanksMax - 1);
    if (a == b) item.fail(fmt::format("found rank {} twice, expected two ranks", a));
    if (!pairs.emplace(std::min(a, b), std::max(a, b)).second) item.fail("appears twice");
  }
  e.subject = text(pairs);
}

// Real ranks are on one machine, whatever the cluster's nodes, and look at all of their links.
void match_slow_links(const Expectation& e, const RunRanks& ranks) {
  demand_reports(e, ranks);
  for (const json::Node& item : e.where.items()) {
    const auto ends = item.items();
    for (const json::Node& end : ends) demand_rank(end, ranks);
    const auto a = Rank(ends[0].integer(0, kRanksMax - 1)), b = Rank(ends[1].integer(0, kRanksMax - 1));
    if (ranks.engine == Engine::protocol && a < ranks.size() && b < ranks.size() &&
        ranks.cluster.node_of(ranks.cards[a]) == ranks.cluster.node_of(ranks.cards[b]))
      item.fail(
          fmt::format("found ranks {} and {} of one node, where no links are looked at; expected ranks of two", a, b));
  }
}

Judgement judge_slow_links(const Expectation& e, const ResultRows& rows, std::size_t i) {
  Pairs found;
  for (const nlohmann::json& l : faults_of(rows, i).at("slow_links")) {
    const auto a = l[0].get<std::int64_t>(), b = l[1].get<std::int64_t>();
    found.emplace(std::min(a, b), std::max(a, b));
  }
  return {fmt::format("{} for {}", found.empty() ? "none" : text(found), rows.name(i)), text(found) == e.subject, 1};
}

}  // namespace

extern const Check slow_links_check{
    .key = "slow_links",
    .read = read_slow_links,
    .demand = [](const Expectation& e) { return fmt::format("slow links are {}", e.subject); },
    .judge = judge_slow_links,
    .match = match_slow_links};

}  // namespace gccl::sim
