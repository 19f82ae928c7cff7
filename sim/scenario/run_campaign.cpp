#include "sim/scenario/run_campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/scenario/judge/evaluate.hpp"
#include "sim/scenario/judge/promises.hpp"
#include "sim/scenario/judge/row_text.hpp"
#include "sim/scenario/result/choices.hpp"
#include "sim/scenario/result/row.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Positions in `points` (indices of the campaign's points), the most steps first.
std::vector<std::size_t> expensive_first(const Campaign& campaign, const std::vector<std::size_t>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  const auto steps = [&](std::size_t at) { return campaign.points[points[at]].steps; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return steps(a) > steps(b); });
  return order;
}

// What a child sends: a row's JSON on one line, then the trace.
std::string packed(const Json& row, const std::string& trace) { return row.dump() + '\n' + trace; }
Json row_in(const std::string& text) {
  return Json::parse(text.begin(), text.begin() + std::ptrdiff_t(text.find('\n')));
}

// The rows of all points: from the journal, and by simulating the others.
std::vector<Json> play_all(const Campaign& campaign, const Engines& engines, const RunOptions& options,
                           std::string& trace) {
  std::vector<Json> rows(campaign.points.size());
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
    const Point& point = campaign.points[left[k]];
    const Played played = play(campaign, point, engines, options.trace && left[k] == 0);
    return packed(result_row(campaign, point, played), played.trace);
  };
  try {
    run_pool(expensive_first(campaign, left), job, pool);
  } catch (const JobFailed& e) {
    const Point& point = campaign.points[left[e.job]];
    const std::string text = fmt::format("{}: {}", describe(*campaign.scenario, row_head(campaign, point)), e.what());
    if (e.blame == JobFailed::Blame::input) campaign.scenario->runs[point.run].where.fail(text);
    e.rethrow(left[e.job], text);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) set_place(campaign, i, rows[i]);
  return rows;
}

Json clusters_of(const Campaign& campaign) {
  Json all = Json::array();
  std::string last;
  for (const SimulatedWorld& w : campaign.worlds) {
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

JudgedRows judge_rows(const Campaign& campaign, std::vector<Json>& rows) {
  JudgedRows judged;
  judged.choices = mark_fastest(rows);
  judged.expectations = evaluate(*campaign.scenario, rows);
  add_promises(rows, &judged.expectations);
  for (const Json& e : judged.expectations) judged.ok = judged.ok && e["ok"].get<bool>();
  return judged;
}

ScenarioResult run_campaign(const Campaign& campaign, const Engines& engines, const RunOptions& options) {
  ScenarioResult result;
  std::vector<Json> rows = play_all(campaign, engines, options, result.trace);
  JudgedRows judged = judge_rows(campaign, rows);
  const Scenario& s = *campaign.scenario;
  result.document = {
      {"schema", "gccl/result/1"},
      {"version", GCCL_VERSION_TEXT},
      {"ok", judged.ok},
      {"scenario", {{"name", s.name}, {"description", s.description}, {"file", json::valid_text(s.file.string())}}},
      {"seed", campaign.seed},
      {"clusters", clusters_of(campaign)},
      {"runs", std::move(rows)},
      {"choices", std::move(judged.choices)},
      {"expectations", std::move(judged.expectations)}};
  return result;
}

}  // namespace gccl::sim
