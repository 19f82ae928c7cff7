#include "nccl_tuner/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "libgccl/base/counted.hpp"
#include "libgccl/base/limits.hpp"
#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/select/changes.hpp"
#include "libgccl/select/others/other_planners.hpp"
#include "libgccl/select/plan.hpp"

namespace gccl::nccl {
namespace {

// NCCL does not say of which type a call is.
constexpr unsigned kElementBytes = 4;
constexpr Count kBytesMax = Count(1) << 36;  // what is longer is as this is
constexpr Count kChannelsMax = 32;

Rank largest_node(Rank ranks, Rank nodes) { return (ranks + nodes - 1) / nodes; }

// The first cards of the first nodes: as many on each, or one less, where they have as many; what a smaller node cannot
// hold is on the others.
std::vector<Card> cards_of(const Cluster& cluster, Rank ranks, Rank nodes) {
  std::vector<std::vector<Card>> on_node(std::min<std::size_t>(nodes, cluster.nodes()));
  std::size_t held = 0;
  for (Card c = 0; c < cluster.cards(); ++c)
    if (const std::size_t node = cluster.node_of(c); node < on_node.size()) on_node[node].push_back(c), ++held;
  if (held < ranks || on_node.size() < nodes)
    throw json::InputError(fmt::format("{} has {} on its first {}, expected {} on {}: it is another machine",
                                       cluster.name(), counted(held, "card"), counted(on_node.size(), "node"), ranks,
                                       nodes));
  std::vector<std::size_t> taken(nodes, 0);
  for (Rank left = ranks; left > 0;)
    for (std::size_t n = 0; n < nodes && left > 0; ++n)
      if (taken[n] < on_node[n].size()) ++taken[n], --left;
  std::vector<Card> cards;
  for (std::size_t n = 0; n < nodes; ++n)
    cards.insert(cards.end(), on_node[n].begin(), on_node[n].begin() + std::ptrdiff_t(taken[n]));
  return cards;
}

// The rows that NCCL runs by any protocol, and those that it runs by Simple alone. Protocols that are none of NCCL's
// serve them all.
struct NcclRows {
  std::vector<Algorithm> any, simple;
  std::size_t at = 0;  // Simple, of the models

  NcclRows(Rank ranks, Rank nodes, CostModels models) {
    while (at < models.size() && nccl_protocol(models[at].protocol.name) != NcclProtocol::Simple) ++at;
    for (const Algorithm& a : algorithms()) {
      const auto their = nccl_algorithm(a);
      if (!their || !nccl_runs(*their, ranks, nodes)) continue;
      (at == models.size() || nccl_sends(*their, NcclProtocol::LL) ? any : simple).push_back(a);
    }
  }
};

Plan nccl_plan(const Call& call, const View& view, CostModels models, const NcclRows& rows) {
  Tuning tuning;
  tuning.search = true;
  tuning.channels_max = kChannelsMax;
  const Plan best = plan(call, view, models, tuning, {}, rows.any);
  if (rows.simple.empty()) return best;
  Plan other = plan(call, view, models.subspan(rows.at, 1), tuning, {}, rows.simple);
  other.protocol += rows.at;
  return other.algorithm && !(best.predicted_ns <= other.predicted_ns) ? other : best;
}

}  // namespace

Choices::Choices(const Sources& sources, std::size_t ranks, std::size_t nodes, std::vector<std::string>* warnings) {
  if (ranks == 0 || nodes == 0 || nodes > ranks || ranks > std::size_t(kRanksMax)) {
    warnings->push_back(
        fmt::format("a communicator of {} ranks on {} nodes: expected 1 to {} ranks on as many nodes at "
                    "most",
                    ranks, nodes, kRanksMax));
    usable_ = false;
    return;
  }
  if (sources.table.empty() && sources.cluster.empty())
    warnings->push_back("neither GCCL_TUNING_FILE, a tuning table, nor GCCL_CLUSTER, a cluster description, is set");
  std::shared_ptr<const Cluster> cluster;
  if (!sources.cluster.empty()) try {
      cluster = plan(sources.cluster, Rank(ranks), Rank(nodes));
    } catch (const json::InputError& e) {
      for (auto& planned : planned_) planned.clear();
      usable_ = false;
      constexpr std::string_view kOfName = "GCCL_CLUSTER: /: ";  // what is wrong with the name, not in the file
      std::string_view why = e.what();
      if (why.starts_with(kOfName)) why.remove_prefix(kOfName.size());
      warnings->push_back(fmt::format("GCCL_CLUSTER: {}", why));
    }
  if (!sources.table.empty()) try {
      read_table(sources.table, cluster.get(), Rank(ranks), Rank(nodes), warnings);
    } catch (const json::InputError& e) {
      entries_ = {};
      usable_ = false;
      warnings->push_back(fmt::format("GCCL_TUNING_FILE: {}", e.what()));
    }
}

void Choices::read_table(const std::string& file, const Cluster* cluster, Rank ranks, Rank nodes,
                         std::vector<std::string>* warnings) {
  table_ = load_tuning_table(file);
  TunedMachine here{.nodes = nodes,
                    .ranks_per_node = largest_node(ranks, nodes),
                    .protocols = {kNcclProtocols.begin(), kNcclProtocols.end()}};
  if (cluster) {
    here.cluster = cluster->name();
    for (const Protocol& p : cluster->protocols())
      if (!p.between_nodes) here.inside.push_back(p.name);
  }
  if (const Status s = check_machine(table_, here); !s.ok()) throw json::InputError(s.text());
  const TuningTable::Entry* foreign = nullptr;
  std::size_t unknown = 0;
  for (const TuningTable::Entry& e : table_.entries) {
    const auto algorithm = nccl_algorithm(*e.algorithm);
    of_entry_.emplace_back();
    const auto protocol = nccl_protocol(e.protocol);
    if (algorithm && (!protocol || nccl_sends(*algorithm, *protocol))) {
      if (!nccl_runs(*algorithm, ranks, nodes)) continue;
      // What a sweep predicts was found with its own channels, which carry as much as a link does; NCCL's carry less.
      of_entry_.back() = {
          .algorithm = *algorithm, .protocol = protocol, .channels = e.predicted_us ? 0 : unsigned(e.channels)};
    } else if (std::ranges::count(kCollectives, e.algorithm->kind)) {
      if (++unknown == 1) foreign = &e;
    }
  }
  if (foreign)
    warnings->push_back(fmt::format(
        "GCCL_TUNING_FILE: {}: NCCL has no {}{} for {}: {} there ({} such {})", table_.place(*foreign),
        foreign->algorithm->name, nccl_algorithm(*foreign->algorithm) ? fmt::format(" by {}", foreign->protocol) : "",
        name(foreign->algorithm->kind), cluster ? "the planner chooses" : "it chooses by itself", unknown,
        unknown == 1 ? "entry" : "entries"));
  entries_ = PreparedTable(table_, ranks, nodes);
  text_ += fmt::format("{}the table {}, {} entries", text_.empty() ? "" : "; ", file, table_.entries.size());
}

std::shared_ptr<const Cluster> Choices::plan(const std::string& file, Rank ranks, Rank nodes) {
  // A name is a string of JSON for those who read one in a file: what is no UTF-8 is shown so.
  const auto named = json::Node::parse(
      nlohmann::json(file).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "GCCL_CLUSTER");
  const std::shared_ptr<const Cluster> cluster = load_cluster(cluster_file(named));
  const std::vector<Card> cards = cards_of(*cluster, ranks, nodes);
  const Layout layout = layout_of(*cluster, cards);
  const View view = layout.view(0);
  std::vector<CostModel> models;
  for (const Protocol& p : cluster->protocols()) models.push_back(cost_model(*cluster, cards, kElementBytes, p));
  const NcclRows rows(ranks, nodes, models);
  for (std::size_t f = 0; f < kCollectives.size(); ++f) {
    const Collective kind = kCollectives[f];
    const Count unit = Count(kElementBytes) * (counts_blocks(kind) ? ranks : 1);
    const auto chosen = [&](Count bytes) -> std::optional<Choice> {
      const Plan p = nccl_plan({.kind = kind, .count = std::max<Count>(1, bytes / unit)}, view, models, rows);
      if (!p.algorithm) return std::nullopt;
      return Choice{.algorithm = *nccl_algorithm(*p.algorithm),
                    .protocol = nccl_protocol(models[p.protocol].protocol.name)};
    };
    // Sizes a quarter longer than the one before, since near choices take turns within a factor of two; where the
    // choice changes between two, at which size it does.
    std::optional<Choice> last = chosen(0);
    if (!last) continue;
    planned_[f].push_back({0, *last});
    Count before = 0;
    for (Count bytes = kElementBytes; bytes <= kBytesMax; bytes += std::max(bytes / 4, Count(kElementBytes))) {
      const std::optional<Choice> here = chosen(bytes);
      if (!here) continue;
      for (Count low = std::exchange(before, bytes); here != last;) {
        low = first_change(low, bytes, std::max<Count>(unit, low / 64), [&](Count c) { return chosen(c) == last; });
        last = chosen(low);
        if (!last) break;
        planned_[f].push_back({low, *last});
      }
    }
  }
  text_ = fmt::format("plans for {}", cluster->name());
  return cluster;
}

const Choice* Choices::find(std::size_t function, Count bytes) const {
  if (const TuningTable::Entry* const e = entries_.find(kCollectives[function], bytes))
    if (const auto& choice = of_entry_[std::size_t(e - table_.entries.data())]) return &*choice;
  const auto& planned = planned_[function];
  const auto after =
      std::upper_bound(planned.begin(), planned.end(), bytes, [](Count b, const Planned& p) { return b < p.from; });
  return after == planned.begin() ? nullptr : &std::prev(after)->choice;
}

std::string Choices::text() const { return text_.empty() ? "nothing to go by: NCCL chooses by itself" : text_; }

}  // namespace gccl::nccl
