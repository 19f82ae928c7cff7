#include "libgccl/cluster/read/tuning_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "libgccl/json/nearest.hpp"
#include "libgccl/schedule/lane.hpp"
#include "libgccl/select/plan.hpp"

namespace gccl {
namespace {

using json::Node;
using Entry = TuningTable::Entry;

constexpr Rank kTableRanksMax = 1u << 20;  // as many as a cluster has cards
constexpr std::size_t kTableEntriesMax = 1u << 14;
constexpr Count kTableChannelsMax = 64;
constexpr double kPredictedUsMax = 1e12;

using Ordered = nlohmann::ordered_json;
std::string line_of(const Ordered& v) { return v.dump(-1, ' ', false, Ordered::error_handler_t::replace); }

TuningTable::Machine read_machine(const Node& v) {
  v.allow({"cluster", "nodes", "cards_per_node", "backends"});
  TuningTable::Machine m{.cluster = v.at("cluster").string(),
                         .nodes = Rank(v.at("nodes").integer(1, kTableRanksMax)),
                         .cards_per_node = Rank(v.at("cards_per_node").integer(1, kTableRanksMax))};
  if (m.cluster.empty()) v.at("cluster").fail("found \"\", expected the name of a cluster");
  if (const auto backends = v.find("backends")) {
    m.backends = backends->string();
    if (m.backends.empty()) backends->fail("found \"\", expected transports as in GCCL_BACKENDS, such as \"shm,tcp\"");
  }
  if (std::uint64_t(m.nodes) * m.cards_per_node > kTableRanksMax)
    v.fail(fmt::format("found {} nodes of {} cards, expected at most {} cards", m.nodes, m.cards_per_node,
                       kTableRanksMax));
  return m;
}

const Algorithm* read_algorithm(const Node& v) {
  const Node collective = v.at("collective"), algorithm = v.at("algorithm");
  const Collective kind = Collective(collective.one_of(collective_names()));
  const Algorithm* const a = find_algorithm(kind, algorithm.string());
  if (!a)
    algorithm.fail(fmt::format("found {}, expected an algorithm of {}{}", algorithm.text(), name(kind),
                               suggestion(algorithm.string(), algorithm_names(kind))));
  return a;
}

// Both ends belong to the range; what is left out reaches as far as the machine does.
void read_range(const Node& v, const char* from, const char* to, Rank most, Rank* min, Rank* max) {
  *max = most;
  if (const auto n = v.find(from)) *min = Rank(n->integer(1, most));
  if (const auto n = v.find(to)) {
    *max = Rank(n->integer(1, most));
    if (*max < *min) n->fail(fmt::format("found {}, which is less than \"{}\", {}", *max, from, *min));
  }
}

Entry read_entry(const Node& v, const TuningTable::Machine& machine) {
  v.allow({"collective", "ranks_min", "ranks_max", "nodes_min", "nodes_max", "from_bytes", "to_bytes", "algorithm",
           "protocol", "chunks", "channels", "window", "predicted_us", "predicted_at_bytes", "source"});
  if (const auto source = v.find("source")) source->string();
  Entry e{.algorithm = read_algorithm(v)};
  read_range(v, "ranks_min", "ranks_max", machine.nodes * machine.cards_per_node, &e.ranks_min, &e.ranks_max);
  read_range(v, "nodes_min", "nodes_max", machine.nodes, &e.nodes_min, &e.nodes_max);
  if (e.nodes_min > e.ranks_max)
    v.at("nodes_min")
        .fail(fmt::format("found {}, expected at most \"ranks_max\", {}: no node is without a rank", e.nodes_min,
                          e.ranks_max));
  if (const auto n = v.find("from_bytes")) e.from_bytes = n->bytes();
  if (const auto n = v.find("to_bytes")) {
    e.to_bytes = n->bytes();
    if (e.to_bytes <= e.from_bytes)
      n->fail(fmt::format("found {}, expected more than \"from_bytes\", {}: the range ends before it", e.to_bytes,
                          e.from_bytes));
  }
  if (const auto p = v.find("protocol")) {
    e.protocol = p->string();
    if (e.protocol.empty()) p->fail("found \"\", expected the name of a protocol");
  }
  if (const auto n = v.find("chunks")) e.chunks = Count(n->integer(1, kChunksMax));
  if (const auto n = v.find("channels")) {
    e.channels = Count(n->integer(1, kTableChannelsMax));
    if (e.chunks == 0) n->fail("expected \"chunks\" with it, at least one for each channel");
    if (e.channels > e.chunks) n->fail(fmt::format("found {}, expected at most \"chunks\", {}", e.channels, e.chunks));
  }
  if (const auto n = v.find("window")) e.window = unsigned(n->integer(2, kWindowMax));
  if (const auto n = v.find("predicted_us")) e.predicted_us = n->number(0, kPredictedUsMax);
  if (const auto n = v.find("predicted_at_bytes")) {
    const Count bytes = n->bytes();
    if (!e.predicted_us) n->fail("expected \"predicted_us\" with it, the time of a call of this size");
    if (bytes < e.from_bytes || bytes >= e.to_bytes)
      n->fail(
          fmt::format("found {}, expected a size that the entry is about: at least \"from_bytes\" and less than "
                      "\"to_bytes\"",
                      bytes));
    e.predicted_at_bytes = bytes;
  }
  return e;
}

}  // namespace

TuningTable read_tuning_table(const Node& v) {
  v.schema("gccl/table/1");
  v.allow({"$schema", "schema", "name", "description", "machine", "entries"});
  if (const auto schema = v.find("$schema")) schema->string();
  TuningTable t{.file = v.file().string(), .name = v.at("name").string()};
  if (const auto text = v.find("description")) t.description = text->string();
  t.machine = read_machine(v.at("machine"));
  const std::vector<Node> entries = v.at("entries").items(1, kTableEntriesMax);
  for (const Node& entry : entries) t.entries.push_back(read_entry(entry, t.machine));
  if (const auto [later, earlier] = overlapping(t.entries); later)
    entries[std::size_t(later - t.entries.data())].fail(
        fmt::format("it is about calls that /entries/{} is about, too: expected ranges of bytes, ranks or nodes that "
                    "do not overlap",
                    earlier - t.entries.data()));
  return t;
}

TuningTable load_tuning_table(const std::filesystem::path& file) { return read_tuning_table(Node::load(file)); }

std::string write_tuning_table(const TuningTable& t) {
  Ordered machine{
      {"cluster", t.machine.cluster}, {"nodes", t.machine.nodes}, {"cards_per_node", t.machine.cards_per_node}};
  if (!t.machine.backends.empty()) machine["backends"] = t.machine.backends;
  Ordered document{{"schema", "gccl/table/1"}, {"name", t.name}};
  if (!t.description.empty()) document["description"] = t.description;
  std::string text = line_of(document);
  text.pop_back();  // the machine and the entries follow, one a line
  text += fmt::format(",\n\"machine\": {},\n\"entries\": [", line_of(machine));
  const Rank ranks = t.machine.nodes * t.machine.cards_per_node;
  for (const Entry& e : t.entries) {
    Ordered v{{"collective", name(e.algorithm->kind)}};
    if (e.ranks_min > 1) v["ranks_min"] = e.ranks_min;
    if (e.ranks_max < ranks) v["ranks_max"] = e.ranks_max;
    if (e.nodes_min > 1) v["nodes_min"] = e.nodes_min;
    if (e.nodes_max < t.machine.nodes) v["nodes_max"] = e.nodes_max;
    if (e.from_bytes > 0) v["from_bytes"] = e.from_bytes;
    if (e.to_bytes != Entry::kNoEnd) v["to_bytes"] = e.to_bytes;
    v["algorithm"] = e.algorithm->name;
    if (!e.protocol.empty()) v["protocol"] = e.protocol;
    if (e.chunks > 0) v["chunks"] = e.chunks;
    if (e.channels > 0) v["channels"] = e.channels;
    if (e.window > 0) v["window"] = e.window;
    if (e.predicted_us) v["predicted_us"] = *e.predicted_us;
    if (e.predicted_at_bytes) v["predicted_at_bytes"] = *e.predicted_at_bytes;
    text += fmt::format("{}\n  {}", &e == t.entries.data() ? "" : ",", line_of(v));
  }
  return text + "\n]}\n";
}

}  // namespace gccl
