#include "sim/scenario/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/scenario/judge/choices.hpp"
#include "sim/scenario/judge/evaluate.hpp"
#include "sim/scenario/result/row.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Positions in `points` (indices of the plan's points), the most steps first.
std::vector<std::size_t> expensive_first(const Plan& plan, const std::vector<std::size_t>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  const auto steps = [&](std::size_t at) { return plan.points[points[at]].steps; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return steps(a) > steps(b); });
  return order;
}

// What a child sends: a row's JSON on one line, then the trace.
std::string packed(const Json& row, const std::string& trace) { return row.dump() + '\n' + trace; }
Json row_in(const std::string& text) {
  return Json::parse(text.begin(), text.begin() + std::ptrdiff_t(text.find('\n')));
}

// The rows of all points: from the journal, and by simulating the others.
std::vector<Json> play_all(const Plan& plan, const Engines& engines, const RunOptions& options, std::string& trace) {
  std::vector<Json> rows(plan.points.size());
  std::vector<std::size_t> left;  // to simulate
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json* known = options.journal ? options.journal->find(options.keys[i]) : nullptr;
    if (known && !(options.trace && i == 0))
      rows[i] = *known;
    else
      left.push_back(i);
  }
  const std::size_t before = rows.size() - left.size();
  PoolOptions pool{.children = options.jobs, .finished = {}, .stop = options.stop};
  pool.finished = [&](std::size_t job, const std::string& text, std::size_t done) {
    const std::size_t i = left[job];
    rows[i] = row_in(text);
    if (i == 0) trace = text.substr(text.find('\n') + 1);
    if (options.journal) options.journal->add(options.keys[i], rows[i]);
    if (options.progress) options.progress(before + done, rows.size());
  };
  const auto job = [&](std::size_t k) {
    const Point& point = plan.points[left[k]];
    const Played played = play(plan, point, engines, options.trace && left[k] == 0);
    return packed(result_row(plan, point, played), played.trace);
  };
  try {
    run_pool(expensive_first(plan, left), job, pool);
  } catch (const JobFailed& e) {
    const Point& point = plan.points[left[e.job]];
    const std::string text = fmt::format("{}: {}", describe(*plan.scenario, row_head(plan, point)), e.what());
    if (e.input) plan.scenario->runs[point.run].where.fail(text);
    throw JobFailed(left[e.job], text);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i]["index"] = i;
    // A journal may know the point from another place of the scenario.
    const Json head = row_head(plan, plan.points[i]);
    for (const char* key : {"run", "stated_bytes"})
      if (head.contains(key)) rows[i][key] = head[key];
  }
  return rows;
}

Json clusters_of(const Plan& plan) {
  Json all = Json::array();
  std::string last;
  for (const World& w : plan.worlds) {
    if (w.cluster_name == last) continue;
    last = w.cluster_name;
    all.push_back({{"name", w.cluster_name},
                   {"file", json::valid_text(w.cluster_file.string())},
                   {"cards", w.cluster->cards()},
                   {"nodes", w.cluster->nodes()}});
  }
  return all;
}

}  // namespace

ScenarioResult run_plan(const Plan& plan, const Engines& engines, const RunOptions& options) {
  ScenarioResult result;
  std::vector<Json> rows = play_all(plan, engines, options, result.trace);
  Json choices = mark_fastest(rows), expectations = evaluate(*plan.scenario, rows);
  const bool ok =
      std::all_of(expectations.begin(), expectations.end(), [](const Json& e) { return e["ok"].get<bool>(); });
  const Scenario& s = *plan.scenario;
  result.document = {
      {"schema", "gccl/result/1"},
      {"version", GCCL_VERSION_TEXT},
      {"ok", ok},
      {"scenario", {{"name", s.name}, {"description", s.description}, {"file", json::valid_text(s.file.string())}}},
      {"seed", plan.seed},
      {"clusters", clusters_of(plan)},
      {"runs", std::move(rows)},
      {"choices", std::move(choices)},
      {"expectations", std::move(expectations)}};
  return result;
}

}  // namespace gccl::sim
