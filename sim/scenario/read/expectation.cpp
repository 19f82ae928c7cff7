#include "sim/scenario/read/expectation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libgccl/json/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace gccl::sim {
namespace {

using Check = Expectation::Check;

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

std::string read_algorithm(const json::Node& node, const Run& run, std::string_view also) {
  const std::string found = node.string();
  if (found == also) return found;
  std::vector<std::string_view> names = runnable(run.task());
  if (std::find(names.begin(), names.end(), found) != names.end()) return found;
  if (!also.empty()) names.push_back(also);
  node.fail(fmt::format("\"{}\" is not among the algorithms of this run{}", found, suggestion(found, names)));
}

void read_filters(const json::Node& node, const Run& run, Expectation& e) {
  if (const auto n = node.find("cluster")) e.cluster = n->string();
  if (const auto n = node.find("engine")) {
    e.engine = engine_names()[n->one_of(engine_names())];
    const auto asked = [&](Engine x) { return name(x) == *e.engine; };
    if (std::none_of(run.engines.begin(), run.engines.end(), asked))
      n->fail(fmt::format("engine \"{}\" is not used by this run", *e.engine));
  }
  if (const auto n = node.find("ranks")) e.ranks = n->integer(1, 1 << 20);
  for (const std::string_view key : {"bytes", "algorithm"})
    if (run.kind != Run::Kind::collective && node.has(key))
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

// What a result of an earlier `gccl run` holds.
std::shared_ptr<const nlohmann::json> read_stored(const json::Node& node) {
  const std::filesystem::path file = node.path();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), error))
      if (entry.path().extension() == ".json") found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    const std::vector<std::string_view> names(found.begin(), found.end());
    node.fail(fmt::format("there is no file {}{}", file.string(), suggestion(file.filename().string(), names)));
  }
  const json::Node result = json::Node::load(file);
  result.schema("gccl/result/1");
  for (const json::Node& row : result.at("runs").items()) {
    row.at("time_us").number(0, 1e300);
    for (const char* key : {"cluster", "engine", "collective", "algorithm", "label"}) row.at(key).string();
  }
  return std::make_shared<const nlohmann::json>(result.at("runs").raw());
}

// "run" or "result" instead of "algorithm". Returns whether there is one; a run's label is looked up later.
bool read_other(const json::Node& node, Expectation& e) {
  const auto run = node.find("run"), result = node.find("result");
  if (int(node.has("algorithm")) + int(run.has_value()) + int(result.has_value()) != 1)
    node.fail("expected exactly one of \"algorithm\", \"run\" and \"result\" to compare with");
  if (run) e.subject = run->string();
  if (result) e.subject = result->string(), e.stored = read_stored(*result);
  return run || result;
}

void read_check(const json::Node& node, const Run& run, Expectation& e) {
  switch (e.check) {
    case Check::max_time:
    case Check::min_time: e.limit = double(node.nanos(1e3)) / 1e3; break;
    case Check::min_busbw: e.limit = node.number(0, 1e9); break;
    case Check::correct:
      if (!node.boolean()) node.fail("found false, expected true");
      if (!run.payload) node.fail("the run does not check its elements; add \"payload\": \"verify\"");
      break;
    case Check::fastest:
      if (e.algorithm) node.fail("\"fastest\" compares all algorithms of the run; leave \"algorithm\" out");
      e.subject = read_algorithm(node, run, "");
      break;
    case Check::within:
      node.allow({"algorithm", "run", "result", "percent"});
      e.limit = node.at("percent").number(0, 1e6);
      if (read_other(node, e)) break;
      if (run.kind != Run::Kind::collective)
        node.fail("is about a single collective; a run of several can be compared with a \"run\" or a \"result\"");
      e.subject = read_algorithm(node.at("algorithm"), run, "best");
      if (!e.algorithm && !run.task().algorithms.automatic)
        node.fail("compares the automatic choice, which this run does not ask for; state the \"algorithm\" beside it");
      if (!e.algorithm) e.algorithm = "auto";
  }
}

void read_object(const json::Node& node, const Run& run, std::vector<Expectation>& all) {
  static constexpr std::pair<std::string_view, Check> kChecks[] = {
      {"max_time_us", Check::max_time}, {"min_time_us", Check::min_time}, {"min_busbw_GBps", Check::min_busbw},
      {"correct", Check::correct},      {"fastest", Check::fastest},      {"within_percent_of", Check::within}};
  node.allow({"cluster", "engine", "ranks", "bytes", "algorithm", "max_time_us", "min_time_us", "min_busbw_GBps",
              "correct", "fastest", "within_percent_of"});
  const std::size_t before = all.size();
  for (const auto& [key, check] : kChecks) {
    const auto found = node.find(key);
    if (!found) continue;
    if (run.kind != Run::Kind::collective && (check == Check::min_busbw || check == Check::fastest))
      found->fail("is about a single collective; a run of several has one time");
    Expectation e{.where = *found,
                  .check = check,
                  .subject = "",
                  .run = {},
                  .stored = nullptr,
                  .cluster = {},
                  .engine = {},
                  .algorithm = {},
                  .ranks = {},
                  .bytes = {}};
    read_filters(node, run, e);
    read_check(*found, run, e);
    all.push_back(std::move(e));
  }
  if (all.size() == before) node.fail("states no check, expected at least one such as \"max_time_us\"");
}

}  // namespace

std::vector<Expectation> read_expectations(const json::Node& node, const Run& run) {
  std::vector<Expectation> all;
  if (node.is_array())
    for (const json::Node& item : node.items(1, 1000)) read_object(item, run, all);
  else
    read_object(node, run, all);
  return all;
}

void resolve_runs(Scenario& scenario) {
  std::vector<std::string_view> labels;
  for (const Run& run : scenario.runs)
    if (!run.label.empty()) labels.push_back(run.label);
  for (std::size_t own = 0; own < scenario.runs.size(); ++own)
    for (Expectation& e : scenario.runs[own].expectations) {
      const auto where = e.check == Check::within ? e.where.find("run") : std::nullopt;
      if (!where) continue;
      const auto has_label = [&](const Run& run) { return !run.label.empty() && run.label == e.subject; };
      const auto at = std::find_if(scenario.runs.begin(), scenario.runs.end(), has_label);
      if (at == scenario.runs.end())
        where->fail(
            fmt::format("no run has the label \"{}\"{}", e.subject.substr(0, 60), suggestion(e.subject, labels)));
      if (std::find_if(at + 1, scenario.runs.end(), has_label) != scenario.runs.end())
        where->fail(fmt::format("several runs have the label \"{}\"", e.subject.substr(0, 60)));
      e.run = std::size_t(at - scenario.runs.begin());
      if (e.run == own) where->fail("is the label of this run itself");
      const Run& run = scenario.runs[own];
      const bool single = run.kind == Run::Kind::collective, also = at->kind == Run::Kind::collective;
      if (single != also || (single && run.task().kind != at->task().kind))
        where->fail(fmt::format("found a run of {}, expected one of {} as here",
                                also ? name(at->task().kind) : "several collectives",
                                single ? name(run.task().kind) : "several collectives"));
    }
}

}  // namespace gccl::sim
