#include "sim/scenario/judge/expectation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libgccl/json/nearest.hpp"
#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {
namespace {

// The names of the algorithms that the run certainly runs or may run.
std::vector<std::string_view> runnable(const Task& task) {
  std::vector<std::string_view> names;
  if (task.algorithms.all)
    for (const Algorithm& a : algorithms())
      if (a.kind == task.kind && !a.variant) names.push_back(a.name);
  for (const auto& [algorithm, where] : task.algorithms.named)
    if (std::find(names.begin(), names.end(), algorithm->name) == names.end()) names.push_back(algorithm->name);
  return names;
}

void read_filters(const json::Node& node, const ScenarioRun& run, Expectation& e) {
  if (const auto n = node.find("cluster")) e.cluster = n->string();
  if (const auto n = node.find("engine")) {
    e.engine = engine_names()[n->one_of(engine_names())];
    const auto asked = [&](Engine x) { return name(x) == *e.engine; };
    if (std::none_of(run.engines.begin(), run.engines.end(), asked))
      n->fail(fmt::format("engine \"{}\" is not used by this run", *e.engine));
  }
  if (const auto n = node.find("ranks")) e.ranks = n->integer(1, kRanksMax);
  for (const std::string_view key : {"bytes", "algorithm"})
    if (run.kind != ScenarioRun::Kind::collective && node.has(key))
      node.at(key).fail("a run of several collectives has one result, which has no bytes and no algorithm of its own");
  if (const auto n = node.find("bytes")) {
    e.bytes = n->bytes();
    const auto& sizes = run.task().bytes;
    if (std::find(sizes.begin(), sizes.end(), *e.bytes) == sizes.end())
      n->fail(fmt::format("{} is not a size of this run", json::format_bytes(*e.bytes)));
  }
  if (const auto n = node.find("algorithm"))
    e.algorithm = read_algorithm(*n, run, run.task().algorithms.automatic ? "auto" : "");
}

void read_object(const json::Node& node, const ScenarioRun& run, std::vector<Expectation>& all) {
  std::vector<std::string_view> keys{"cluster", "engine", "ranks", "bytes", "algorithm"};
  for (const Check* check : checks()) keys.push_back(check->key);
  node.allow(keys);
  const std::size_t before = all.size();
  for (const Check* check : checks()) {
    const auto found = node.find(check->key);
    if (!found) continue;
    if (run.kind != ScenarioRun::Kind::collective && check->about != Check::About::any)
      found->fail("is about a single collective; a run of several has one time");
    Expectation e{.where = *found,
                  .filters = node,
                  .check = check,
                  .subject = "",
                  .label = {},
                  .run = {},
                  .stored = nullptr,
                  .cluster = {},
                  .engine = {},
                  .algorithm = {},
                  .ranks = {},
                  .bytes = {}};
    read_filters(node, run, e);
    check->read(*found, run, e);
    all.push_back(std::move(e));
  }
  if (all.size() == before) node.fail("states no check, expected at least one such as \"max_time_us\"");
}

}  // namespace

std::string read_algorithm(const json::Node& node, const ScenarioRun& run, std::string_view also) {
  const std::string found = node.string();
  if (found == also) return found;
  std::vector<std::string_view> names = runnable(run.task());
  if (std::find(names.begin(), names.end(), found) != names.end()) return found;
  if (!also.empty()) names.push_back(also);
  node.fail(fmt::format("\"{}\" is not among the algorithms of this run{}", found, suggestion(found, names)));
}

std::vector<Expectation> read_expectations(const std::optional<json::Node>& node, const ScenarioRun& run) {
  std::vector<Expectation> all;
  if (node && node->is_array())
    for (const json::Node& item : node->items(1, 1000)) read_object(item, run, all);
  else if (node)
    read_object(*node, run, all);
  if (!run.must_complete()) return all;
  const auto about_that = [](const Expectation& e) { return e.check->key == "completed"; };
  if (std::none_of(all.begin(), all.end(), about_that)) {
    read_object(json::Node::parse(R"({"completed": true})", "not stated"), run, all);
    all.back().where = run.where;
  }
  return all;
}

void resolve_runs(Scenario& scenario) {
  std::vector<std::string_view> labels;
  for (const ScenarioRun& run : scenario.runs)
    if (!run.label.empty()) labels.push_back(run.label);
  for (std::size_t own = 0; own < scenario.runs.size(); ++own)
    for (Expectation& e : scenario.runs[own].expectations) {
      const auto& where = e.label;
      if (!where) continue;
      const auto has_label = [&](const ScenarioRun& run) { return !run.label.empty() && run.label == e.subject; };
      const auto at = std::find_if(scenario.runs.begin(), scenario.runs.end(), has_label);
      if (at == scenario.runs.end())
        where->fail(
            fmt::format("no run has the label \"{}\"{}", e.subject.substr(0, 60), suggestion(e.subject, labels)));
      if (std::find_if(at + 1, scenario.runs.end(), has_label) != scenario.runs.end())
        where->fail(fmt::format("several runs have the label \"{}\"", e.subject.substr(0, 60)));
      e.run = std::size_t(at - scenario.runs.begin());
      if (e.run == own) where->fail("is the label of this run itself");
      const ScenarioRun& run = scenario.runs[own];
      const bool single = run.kind == ScenarioRun::Kind::collective, also = at->kind == ScenarioRun::Kind::collective;
      if (single != also || (single && run.task().kind != at->task().kind))
        where->fail(fmt::format("found a run of {}, expected one of {} as here",
                                also ? name(at->task().kind) : "several collectives",
                                single ? name(run.task().kind) : "several collectives"));
      if (run.repeats != at->repeats)  // times are of all repeats
        where->fail(fmt::format("found a run that is done {} times, expected one that is done {} as here", at->repeats,
                                run.repeats == 1 ? "once" : fmt::format("{} times", run.repeats)));
    }
}

}  // namespace gccl::sim
