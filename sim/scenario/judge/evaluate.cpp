#include "sim/scenario/judge/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/scenario/judge/check.hpp"
#include "sim/scenario/judge/row_text.hpp"

namespace gccl::sim {
namespace {

bool selects(const Expectation& e, std::size_t run, const ResultRow& row) {
  if (row.run != run || !e.selects(row.cluster, row.engine, row.world_ranks)) return false;
  if (e.bytes && std::find(row.stated_bytes.begin(), row.stated_bytes.end(), *e.bytes) == row.stated_bytes.end())
    return false;
  if (!e.algorithm) return true;
  return *e.algorithm == "auto" ? row.automatic : row.algorithm == *e.algorithm;
}

Judgement worst_of(const Expectation& e, std::size_t run, const ResultRows& rows) {
  Judgement worst;
  std::size_t selected = 0, broken = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!selects(e, run, rows[i])) continue;
    if (e.check->about == Check::About::rivals && i > 0 && rows.competitors_end(i - 1) > i) continue;
    Judgement one = e.check->judge(e, rows, i);
    if (!one.ok) one.found += lateness(*rows[i].json);
    ++selected;
    broken += !one.ok;
    if (selected == 1 || std::tuple(!one.ok, one.excess) > std::tuple(!worst.ok, worst.excess)) worst = std::move(one);
  }
  worst.ok = broken == 0;
  if (selected > 1) worst.found += fmt::format("; the worst of {} results", selected);
  if (selected > 1 && broken) worst.found += fmt::format(", {} of which break{} it", broken, broken == 1 ? "s" : "");
  return worst;
}

std::string text_of(const Expectation& e, const ScenarioRun& run) {
  std::string text = run.label;
  if (text.empty()) text = run.kind == ScenarioRun::Kind::collective ? std::string(name(run.task().kind)) : "sequence";
  if (e.cluster) text += fmt::format(" on {}", *e.cluster);
  if (e.engine) text += fmt::format(" ({})", *e.engine);
  if (e.ranks) text += fmt::format(" {}", counted(std::uint64_t(*e.ranks), "rank"));
  if (e.bytes) text += fmt::format(" {}", json::format_bytes(*e.bytes));
  if (e.algorithm) text += fmt::format(" {}", *e.algorithm);
  return fmt::format("{}: {}", text, e.check->demand(e));
}

[[noreturn]] void fail_selects_nothing(const Expectation& e, std::size_t run, const ResultRows& heads) {
  std::set<std::string> clusters, ranks;
  for (const ResultRow& head : heads)
    if (head.run == run) clusters.emplace(head.cluster), ranks.insert(std::to_string(head.world_ranks));
  const auto demand_one_of = [&](const char* key, const std::string& found, const std::set<std::string>& all) {
    const std::vector<std::string_view> names(all.begin(), all.end());
    if (!all.count(found))
      e.filters.at(key).fail(fmt::format("found {}{}", e.filters.at(key).text(), suggestion(found, names)));
  };
  if (e.cluster) demand_one_of("cluster", *e.cluster, clusters);
  if (e.ranks) demand_one_of("ranks", std::to_string(*e.ranks), ranks);
  std::vector<std::string> worlds;
  for (const ResultRow& head : heads) {
    std::string world = fmt::format("\"{}\" with {}", head.cluster, counted(head.world_ranks, "rank"));
    if (std::find(worlds.begin(), worlds.end(), world) == worlds.end()) worlds.push_back(std::move(world));
  }
  e.where.fail(fmt::format("selects no result; this scenario runs on {}", fmt::join(worlds, ", ")));
}

}  // namespace

void check_expectations(const Scenario& scenario, const std::vector<nlohmann::json>& documents) {
  const ResultRows heads(documents);
  for (std::size_t r = 0; r < scenario.runs.size(); ++r)
    for (const Expectation& e : scenario.runs[r].expectations) {
      bool some = false;
      for (std::size_t i = 0; i < heads.size(); ++i) {
        if (!selects(e, r, heads[i])) continue;
        some = true;
        if (e.check->prepare) e.check->prepare(e, scenario, heads, i);
      }
      if (!some) fail_selects_nothing(e, r, heads);
    }
}

nlohmann::json evaluate(const Scenario& scenario, const std::vector<nlohmann::json>& documents) {
  ResultRows rows(documents);
  for (std::size_t r = 0; r < scenario.runs.size(); ++r)
    for (const Expectation& e : scenario.runs[r].expectations) {
      if (e.check->key != "completed" || e.limit != 0) continue;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (selects(e, r, rows[i])) rows.set_may_fail(i);
    }
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t r = 0; r < scenario.runs.size(); ++r)
    for (const Expectation& e : scenario.runs[r].expectations) {
      const Judgement worst = worst_of(e, r, rows);
      all.push_back({{"pointer", e.where.pointer()},
                     {"text", text_of(e, scenario.runs[r])},
                     {"found", worst.found},
                     {"ok", worst.ok}});
    }
  return all;
}

}  // namespace gccl::sim
