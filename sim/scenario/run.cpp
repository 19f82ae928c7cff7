#include "sim/scenario/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/scenario/evaluate.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::vector<std::size_t> expensive_first(const Plan& plan) {
  std::vector<std::size_t> order(plan.points.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return plan.points[a].steps > plan.points[b].steps; });
  return order;
}

// A row's JSON on one line, then the trace.
std::string packed(const Played& played) { return played.row.dump() + '\n' + played.trace; }

// Marks the fastest of the points first .. end-1 and returns it; on a tie the selector's choice, else the earlier one.
std::size_t mark_fastest(const Plan& plan, std::vector<Json>& rows, std::size_t first, std::size_t end) {
  std::size_t best = first;
  for (std::size_t i = first; i < end; ++i) {
    const double own = rows[i]["time_us"], least = rows[best]["time_us"];
    if (own < least || (own == least && plan.points[i].automatic)) best = i;
  }
  for (std::size_t i = first; i < end; ++i) rows[i]["fastest"] = i == best;
  return best;
}

// A closed form that is this far from the simulated time is told.
constexpr double kPredictionOff = 0.25;

// The single collectives whose closed form and simulated time differ by more than that. Beside other collectives a
// closed form, which knows no other traffic, says little.
Json findings_of(const Plan& plan, const std::vector<Json>& rows) {
  Json findings = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    if (plan.scenario->runs[plan.points[i].run].kind != Run::Kind::collective || row["predicted_us"].is_null())
      continue;
    const double predicted = row["predicted_us"], simulated = row["time_us"];
    if (std::abs(predicted - simulated) <= kPredictionOff * simulated) continue;
    const double off = simulated > 0 ? (predicted / simulated - 1) * 100 : 0;
    findings.push_back({{"kind", "prediction"},
                        {"index", i},
                        {"off_percent", off},
                        {"text", fmt::format("{}: the closed form says {:.4g} us, simulated were {:.4g} us ({:+.0f} %)",
                                             describe(plan, plan.points[i]), predicted, simulated, off)}});
  }
  return findings;
}

// How far the selector's choice was from the fastest, point by point.
Json mark_and_choose(const Plan& plan, std::vector<Json>& rows) {
  Json choices = Json::array();
  for (std::size_t first = 0, end; first < rows.size(); first = end) {
    end = competitors_end(plan, first);
    const Json& best = rows[mark_fastest(plan, rows, first, end)];
    for (std::size_t i = first; i < end; ++i) {
      if (!plan.points[i].automatic) continue;
      const double chosen_us = rows[i]["time_us"], best_us = best["time_us"];
      Json c;
      for (const char* key : {"run", "cluster", "collective", "engine", "ranks", "bytes", "dtype"})
        c[key] = rows[i][key];
      c["chosen"] = rows[i]["algorithm"];
      c["chosen_us"] = chosen_us;
      c["fastest"] = best["algorithm"];
      c["fastest_us"] = best_us;
      c["compared"] = end - first;
      c["regret_percent"] = best_us > 0 ? (chosen_us / best_us - 1) * 100 : 0.0;
      choices.push_back(std::move(c));
    }
  }
  return choices;
}

Json clusters_of(const Plan& plan) {
  Json all = Json::array();
  std::string last;
  for (const World& w : plan.worlds) {
    if (w.cluster_name == last) continue;
    last = w.cluster_name;
    all.push_back({{"name", w.cluster_name},
                   {"file", w.cluster_file.string()},
                   {"cards", w.cluster->cards()},
                   {"nodes", w.cluster->nodes()}});
  }
  return all;
}

}  // namespace

ScenarioResult run_plan(const Plan& plan, const Engines& engines, const RunOptions& options) {
  PoolOptions pool{.children = options.jobs, .finished = {}, .stop = options.stop};
  if (options.progress) pool.finished = [&](std::size_t done) { options.progress(done, plan.points.size()); };
  const auto job = [&](std::size_t i) { return packed(play(plan, plan.points[i], engines, options.trace && i == 0)); };
  std::vector<std::string> texts;
  try {
    texts = run_pool(expensive_first(plan), job, pool);
  } catch (const JobFailed& e) {
    const Point& point = plan.points[e.job];
    const std::string text = fmt::format("{}: {}", describe(plan, point), e.what());
    if (e.input) plan.scenario->runs[point.run].where.fail(text);
    throw JobFailed(e.job, text);
  }

  ScenarioResult result;
  std::vector<Json> rows;
  for (std::string& text : texts) {
    const std::size_t end = text.find('\n');
    rows.push_back(Json::parse(text.begin(), text.begin() + std::ptrdiff_t(end)));
    rows.back()["index"] = rows.size() - 1;
    if (rows.size() == 1) result.trace = text.substr(end + 1);
    text = {};
  }
  Json choices = mark_and_choose(plan, rows), expectations = evaluate(plan, rows), findings = findings_of(plan, rows);
  const bool ok =
      std::all_of(expectations.begin(), expectations.end(), [](const Json& e) { return e["ok"].get<bool>(); });
  const Scenario& s = *plan.scenario;
  result.document = {{"schema", "gccl/result/1"},
                     {"version", GCCL_VERSION_TEXT},
                     {"ok", ok},
                     {"scenario", {{"name", s.name}, {"description", s.description}, {"file", s.file.string()}}},
                     {"seed", plan.seed},
                     {"clusters", clusters_of(plan)},
                     {"runs", std::move(rows)},
                     {"choices", std::move(choices)},
                     {"findings", std::move(findings)},
                     {"expectations", std::move(expectations)}};
  return result;
}

}  // namespace gccl::sim
