#include "sim/scenario/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/scenario/judge/evaluate.hpp"

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

// A row's JSON on one line, then the trace.
std::string packed(const Played& played) { return played.row.dump() + '\n' + played.trace; }
Json row_of(const std::string& text) {
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
    rows[i] = row_of(text);
    if (i == 0) trace = text.substr(text.find('\n') + 1);
    if (options.journal) options.journal->add(options.keys[i], rows[i]);
    if (options.progress) options.progress(before + done, rows.size());
  };
  const auto job = [&](std::size_t k) {
    return packed(play(plan, plan.points[left[k]], engines, options.trace && left[k] == 0));
  };
  try {
    run_pool(expensive_first(plan, left), job, pool);
  } catch (const JobFailed& e) {
    const Point& point = plan.points[left[e.job]];
    const std::string text = fmt::format("{}: {}", describe(plan, point), e.what());
    if (e.input) plan.scenario->runs[point.run].where.fail(text);
    throw JobFailed(left[e.job], text);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i]["index"] = i;
    rows[i]["run"] = plan.points[i].run;  // a journal may know the run from another place of the scenario
  }
  return rows;
}

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
      for (const char* key : {"run", "cluster", "label", "collective", "engine", "ranks", "bytes", "dtype"})
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
  Json choices = mark_and_choose(plan, rows), expectations = evaluate(plan, rows);
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
