#include "sim/scenario/read/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/scenario/judge/expectation.hpp"
#include "sim/scenario/read/faults.hpp"
#include "sim/scenario/read/placement.hpp"

namespace gccl::sim {
namespace {

constexpr std::size_t kTextMax = 4096;

std::string read_text(const json::Node& node) {
  std::string text = node.string();
  if (text.size() > kTextMax) node.fail(fmt::format("has {} bytes, expected at most {}", text.size(), kTextMax));
  return text;
}

// One value or a list of them, none twice.
template <class F>
auto one_or_list(const json::Node& node, std::size_t most, F read) {
  std::vector<decltype(read(node))> all;
  if (!node.is_array()) {
    all.push_back(read(node));
    return all;
  }
  for (const json::Node& item : node.items(1, most)) {
    auto value = read(item);
    if (std::find(all.begin(), all.end(), value) != all.end()) item.fail(fmt::format("{} appears twice", item.text()));
    all.push_back(std::move(value));
  }
  return all;
}

// The nodes of one value or of a list's elements, in one_or_list's order.
std::vector<json::Node> nodes_of(const json::Node& node) {
  return node.is_array() ? node.items() : std::vector<json::Node>{node};
}

std::vector<std::pair<Straggler, json::Node>> read_stragglers(const json::Node& node) {
  std::vector<std::pair<Straggler, json::Node>> all;
  std::vector<bool> seen(kRanksMax);
  for (const json::Node& item : node.items(1, kRanksMax)) {
    item.allow({"rank", "start_us", "slowdown"});
    Straggler s{.rank = Rank(item.at("rank").integer(0, kRanksMax - 1))};
    if (seen[s.rank]) item.at("rank").fail(fmt::format("rank {} appears twice", s.rank));
    seen[s.rank] = true;
    if (const auto n = item.find("start_us")) {
      s.start_ns = n->nanos(1e3);
      if (s.start_ns > 3'600'000'000'000) n->fail("starts later than one hour, the most a straggler may");
    }
    if (const auto n = item.find("slowdown")) s.slowdown = n->number(1, 1e6);
    all.emplace_back(s, item.at("rank"));
  }
  return all;
}

std::vector<Task> read_sequence(const json::Node& node) {
  std::vector<Task> tasks;
  for (const json::Node& item : node.items(1, kStagesMax)) {
    item.allow({"collective", "bytes", "dtype", "op", "root", "in_place", "algorithm", "planner", "chunks", "channels",
                "window", "protocol", "groups", "counts"},
               {"shares", "lanes"});
    tasks.push_back(read_task(item, true));
  }
  return tasks;
}

ScenarioRun read_run(const json::Node& node) {
  ScenarioRun run{
      .where = node, .label = "", .streams = {}, .stragglers = {}, .faults = {}, .recovery = {}, .expectations = {}};
  const auto sequence = node.find("sequence"), concurrent = node.find("concurrent");
  if (sequence && concurrent) node.fail("has both \"sequence\" and \"concurrent\", expected one");
  if (sequence || concurrent) {
    node.allow({"label", "sequence", "concurrent", "engine", "payload", "stragglers", "faults", "recovery", "repeats",
                "compute_us", "expect"});
    run.kind = sequence ? ScenarioRun::Kind::sequence : ScenarioRun::Kind::concurrent;
    if (sequence)
      run.streams.push_back(read_sequence(*sequence));
    else
      for (const json::Node& stream : concurrent->items(1, kStreamsMax)) run.streams.push_back(read_sequence(stream));
  } else {
    node.allow({"label",      "collective", "bytes",   "dtype",      "op",     "root",     "in_place",
                "algorithms", "planner",    "chunks",  "channels",   "window", "protocol", "groups",
                "counts",     "engine",     "payload", "stragglers", "expect", "sequence", "concurrent",
                "faults",     "recovery",   "repeats", "compute_us"},
               {"shares", "lanes"});
    run.streams.push_back({read_task(node, false)});
  }
  if (const auto n = node.find("label")) run.label = read_text(*n);
  if (const auto n = node.find("faults")) run.faults = read_faults(*n);
  if (const auto n = node.find("recovery")) run.recovery = read_recovery(*n);
  if (const auto n = node.find("repeats")) run.repeats = unsigned(n->integer(1, kRepeatsMax));
  if (const auto n = node.find("compute_us")) {
    run.compute = n->nanos(1e3);
    if (run.compute > 3'600'000'000'000) n->fail("is longer than one hour, the most that ranks may compute");
  }
  if (node.has("faults") || node.has("recovery")) run.engines = {Engine::protocol};
  if (const auto n = node.find("engine"))
    run.engines =
        one_or_list(*n, std::size(kEngineNames), [](const json::Node& x) { return Engine(x.one_of(kEngineNames)); });
  if (const auto n = node.find("payload")) {
    static constexpr std::string_view kPayloads[] = {"none", "verify"};
    run.payload = n->one_of(kPayloads) == 1;
  }
  if (std::any_of(run.engines.begin(), run.engines.end(), plays_ranks)) run.payload = true;
  if (const auto n = node.find("stragglers")) run.stragglers = read_stragglers(*n);
  run.expectations = read_expectations(node.find("expect"), run);
  return run;
}

// Which runs ask for the same but for what the rows of one run may differ in.
void compare_runs(Scenario& s) {
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < s.runs.size(); ++i) {
    nlohmann::json asked = s.runs[i].where.raw();
    for (const char* key : {"label", "bytes", "algorithms", "chunks", "channels", "window", "protocol", "shares",
                            "lanes", "engine", "payload", "planner", "expect"})
      asked.erase(key);
    s.runs[i].like = first.try_emplace(asked.dump(), i).first->second;
  }
}

}  // namespace

Scenario read_scenario(const std::filesystem::path& file) { return read_scenario(json::Node::load(file)); }

Scenario read_scenario(const json::Node& node) {
  node.schema("gccl/scenario/1");
  node.allow({"$schema", "schema", "name", "description", "cluster", "ranks", "placement", "seed", "runs"});
  Scenario s;
  s.file = node.file();
  s.name = read_text(node.at("name"));
  if (const auto n = node.find("description")) s.description = read_text(*n);
  const json::Node cluster = node.at("cluster");
  const auto paths = one_or_list(cluster, 64, [](const json::Node& x) { return x.path(); });
  for (std::size_t i = 0; i < paths.size(); ++i) s.clusters.emplace_back(paths[i], nodes_of(cluster)[i]);
  if (const auto n = node.find("ranks")) {
    const auto ranks = one_or_list(*n, 256, [](const json::Node& x) { return Rank(x.integer(1, kRanksMax)); });
    for (std::size_t i = 0; i < ranks.size(); ++i) s.ranks.emplace_back(ranks[i], nodes_of(*n)[i]);
  }
  if (const auto n = node.find("placement")) s.placement = read_placement(*n);
  if (const auto n = node.find("seed")) s.seed = std::uint64_t(n->integer(0, INT64_MAX));
  for (const json::Node& run : node.at("runs").items(1, kRunsMax)) s.runs.push_back(read_run(run));
  resolve_runs(s);
  compare_runs(s);
  return s;
}

}  // namespace gccl::sim
