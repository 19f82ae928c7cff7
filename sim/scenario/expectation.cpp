#include "sim/scenario/expectation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/json/nearest.hpp"
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
      node.allow({"algorithm", "percent"});
      e.subject = read_algorithm(node.at("algorithm"), run, "best");
      e.limit = node.at("percent").number(0, 1e6);
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
    if (run.kind != Run::Kind::collective &&
        (check == Check::min_busbw || check == Check::fastest || check == Check::within))
      found->fail("is about a single collective; a run of several has one time");
    Expectation e{.where = *found,
                  .check = check,
                  .subject = "",
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

}  // namespace gccl::sim
