#include "sim/measured/predict/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/library_choices.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/select/others/nccl_model.hpp"
#include "libgccl/select/others/openmpi_rules.hpp"
#include "sim/measured/predict/mpi_work.hpp"
#include "sim/scenario/read/reader.hpp"
#include "sim/scenario/read/sizes.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Which cards of a cluster measured nodes stand for: its nodes, or where these are made of several hosts that have as
// many cards as a row says, the hosts.
class MeasuredNodes {
 public:
  explicit MeasuredNodes(const Cluster& cluster) : nodes_(cluster.nodes()) {
    for (Card c = 0; c < cluster.cards(); ++c) nodes_[cluster.node_of(c)].push_back(c);
    for (Rank k = 0; k < cluster.nodes(); ++k) {
      const std::size_t each = nodes_[k].size() / cluster.hosts(k);
      for (std::size_t at = 0; at < nodes_[k].size(); at += each)
        hosts_.emplace_back(nodes_[k].begin() + std::ptrdiff_t(at), nodes_[k].begin() + std::ptrdiff_t(at + each));
    }
  }

  // Whether several measured nodes are in one of the cluster's.
  bool packed(const Measurement& m) const {
    return m.nodes > 1 && of_row(m) == &hosts_ && hosts_[0].size() < nodes_[0].size();
  }

  std::vector<Card> cards_of(const Measurement& m) const {
    std::vector<Card> all;
    for (Rank k = 0; k < m.nodes; ++k) {
      const std::vector<Card>& node = (*of_row(m))[k];
      all.insert(all.end(), node.begin(), node.begin() + m.cards);
    }
    return all;
  }

  std::string why_not(const Measurement& m) const {
    const auto& nodes = *of_row(m);
    if (m.nodes > nodes.size())
      return fmt::format("on {} nodes; the cluster has {}{}", m.nodes, nodes.size(),
                         nodes[0].size() >= 2 * std::size_t(m.cards)
                             ? " (a node that is a rack of smaller ones says so by \"hosts\")"
                             : "");
    std::size_t least = SIZE_MAX;
    for (Rank k = 0; k < m.nodes; ++k) least = std::min(least, nodes[k].size());
    if (m.cards > least)
      return fmt::format("with {} ranks on a node; the cluster's nodes have {} cards", m.cards, least);
    return {};
  }

 private:
  const std::vector<std::vector<Card>>* of_row(const Measurement& m) const {
    return m.cards <= hosts_[0].size() ? &hosts_ : &nodes_;
  }

  std::vector<std::vector<Card>> nodes_, hosts_;
};

// What makes one run of a scenario.
struct RunKey {
  Collective kind;
  Dtype dtype;
  bool in_place, whole;  // whole: not cut up, as MPI libraries send each step's message
  std::string algorithm, protocol, planner;
  std::optional<Slicing> slicing;
  Rank root;
  auto operator<=>(const RunKey&) const = default;
};

Json run_of(const RunKey& key) {
  Json run = {{"collective", name(key.kind)}, {"dtype", name(key.dtype)}, {"algorithms", key.algorithm}};
  if (key.in_place) run["in_place"] = true;
  if (key.whole) run["chunks"] = run["channels"] = 1;
  if (key.slicing) {
    run["chunks"] = key.slicing->shares;
    run["channels"] = key.slicing->lanes;
    run["window"] = key.slicing->window;
  }
  if (key.root > 0) run["root"] = key.root;
  if (!key.protocol.empty()) run["protocol"] = key.protocol;
  if (!key.planner.empty()) run["planner"] = key.planner;
  if (key.kind != Collective::barrier) run["bytes"] = Json::array();
  return run;
}

// Whether a row's protocol matters. A cluster's only one stands for all unless it is called as one of NCCL's is.
bool tells_protocols_apart(const Cluster& cluster) {
  const Protocols& all = cluster.protocols();
  return all.size() > 1 || std::ranges::find(kNcclProtocols, all[0].name) != kNcclProtocols.end();
}

// The protocol that a row states: one of the cluster's, or of NCCL's.
std::optional<std::string> stated_protocol(const Measurement& m, const Cluster& cluster) {
  std::vector<std::string> known(kNcclProtocols.begin(), kNcclProtocols.end());
  for (const Protocol& p : cluster.protocols()) known.push_back(p.name);
  for (const std::string& name : known)
    if (!name.empty() && lower_case(name) == lower_case(m.protocol)) return name;
  return std::nullopt;
}

const Algorithm* served_by(const MeasuredAlgorithm& a, const Call& call, Rank ranks) {
  const bool ring = a.library == PlannerKind::openmpi && a.algorithm->name == "ring";
  return ring && openmpi_has_no_ring(call, ranks) ? find_algorithm(call.kind, "recursive_doubling") : a.algorithm;
}

// Programs that measure reduce-scatters call MPI_Reduce_scatter, whose rules are those for blocks of any length.
const Algorithm* chosen_by_open_mpi(const Measurement& m) {
  const OpenMpiAlgorithm theirs = openmpi_algorithm(Collective::reduce_scatterv, m.ranks(), double(m.bytes));
  return find_algorithm(m.kind, theirs.name == "ring" ? "ring" : "recursive_halving");
}

}  // namespace

RowKinds kinds_of(const std::vector<Measurement>& rows) {
  RowKinds kinds;
  for (const Measurement& m : rows)
    if (const MeasuredAlgorithm a = measured_algorithm(m.kind, m.algorithm); a.wrong.empty())
      ++(a.mpi ? kinds.mpi : kinds.others);
  return kinds;
}

MeasuredPoints::MeasuredPoints(const std::vector<Measurement>& rows, const MeasuredClusters& clusters,
                               const std::filesystem::path& file, std::vector<SkippedRow>& skipped,
                               std::string_view planner)
    : rows_(rows) {
  for (const Measurement& m : rows) algorithms_.push_back(measured_algorithm(m.kind, m.algorithm));
  const MeasuredNodes nodes(*clusters.cards);
  std::map<std::pair<std::vector<Card>, bool>, std::map<RunKey, std::vector<std::size_t>>> found;  // by cards, and mpi
  std::map<std::vector<Card>, Layout> layouts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Measurement& m = rows[i];
    if (std::string why = nodes.why_not(m); !why.empty()) {
      skipped.push_back({m.at, std::move(why)});
      continue;
    }
    MeasuredAlgorithm algorithm = algorithms_[i];
    const Cluster& cluster = algorithm.mpi ? *clusters.mpi : *clusters.cards;
    if (!algorithm.wrong.empty()) {
      skipped.push_back({m.at, algorithm.wrong});
      continue;
    }
    std::vector<Card> cards = nodes.cards_of(m);
    std::string chooses;
    if (algorithm.automatic) {
      const bool own = planner == "library" || (algorithm.mpi && planner == "nccl");
      chooses = own ? kPlanners[std::size_t(algorithm.library)] : planner;
    }
    if (chooses == "openmpi" && m.kind == Collective::reduce_scatter) {
      algorithm.algorithm = chosen_by_open_mpi(m);
      algorithm.automatic = false;
      chooses.clear();
    }
    const auto [layout, fresh] = layouts.try_emplace(cards);
    if (fresh) layout->second = layout_of(cluster, cards);
    const Call call{
        .kind = m.kind, .count = elements(m.kind, m.bytes, m.ranks(), size_of(m.dtype)), .in_place = m.in_place};
    std::string protocol;
    if (algorithm.automatic && planner == "library" && !algorithm.mpi) {
      const LibraryChoice* choice = library_choice(cluster, m.kind, m.nodes, m.bytes);
      if (choice && choice->algorithm->can(call, layout->second.view(0))) {
        algorithm.algorithm = choice->algorithm;
        algorithm.automatic = false;
        chooses.clear();
        const auto same = std::ranges::find(cluster.protocols(), choice->protocol, &Protocol::name);
        if (same != cluster.protocols().end() && (m.nodes == 1 || same->between_nodes)) protocol = choice->protocol;
      }
    }
    if (algorithm.algorithm) {
      algorithm.algorithm = served_by(algorithm, call, m.ranks());
      if (!has_counts(m.kind) && !algorithm.algorithm->can(call, layout->second.view(0))) {
        skipped.push_back({m.at, fmt::format("\"{}\" cannot serve this {} on {} in GCCL", algorithm.algorithm->name,
                                             name(m.kind), counted(m.ranks(), "rank"))});
        continue;
      }
    }
    if (const auto stated = stated_protocol(m, cluster); stated && tells_protocols_apart(cluster)) {
      const auto same = std::ranges::find(cluster.protocols(), *stated, &Protocol::name);
      const bool known = same != cluster.protocols().end();
      if (!known || (m.nodes > 1 && !same->between_nodes)) {
        skipped.push_back(
            {m.at, fmt::format("the cluster has no protocol \"{}\"{}", *stated, known ? " between nodes" : "")});
        continue;
      }
      if (algorithm.algorithm && algorithm.algorithm->in_switch && !same->in_switch) {
        skipped.push_back({m.at, fmt::format("\"{}\" leaves summing to switches, which do not sum by protocol \"{}\"",
                                             algorithm.algorithm->name, *stated)});
        continue;
      }
      protocol = *stated;
    }
    if (nodes.packed(m)) packed_[i] = true;
    if (algorithm.automatic) {
      if (chooses == "nccl" && !nccl_machine(cluster, cards)) {
        if (planner != "library")
          throw json::InputError(
              fmt::format("--planner nccl: the parameters of {} have no \"nccl\" object that says which architecture "
                          "its cards are of",
                          cluster.name()));
        chooses = "gccl";
      }
    }
    const std::string asked(algorithm.automatic ? "auto" : algorithm.algorithm->name);
    const bool whole = algorithm.mpi && chooses != "openmpi";  // whose rules say how it cuts up
    const RunKey key{m.kind, m.dtype, m.in_place, whole, asked, protocol, chooses, m.slicing, m.root};
    found[{std::move(cards), algorithm.mpi}][key].push_back(i);
  }
  for (auto& [where, runs] : found) {
    World world{.cards = where.first, .mpi = where.second, .scenario = {}, .rows = {}};
    Json list = Json::array();
    std::size_t points = 0;
    const auto finish = [&] {
      const Json document = {{"schema", "gccl/scenario/1"},
                             {"name", "measured"},
                             {"cluster", std::filesystem::absolute(file).string()},
                             {"placement", {{"cards", world.cards}}},
                             {"runs", list}};
      world.scenario = read_scenario(json::Node::parse(document.dump(), file));
      worlds_.push_back(world);
      world.rows.clear();
      list.clear();
      points = 0;
    };
    for (const auto& [key, members] : runs) {
      std::set<Count> sizes;
      const auto begin = [&, &run = key] {
        if (list.size() == kRunsMax) finish();
        list.push_back(run_of(run));
        world.rows.emplace_back();
        sizes.clear();
      };
      if (points == kPointsMax) finish();
      begin();
      for (const std::size_t i : members) {
        if (!sizes.count(rows[i].bytes)) {
          if (points == kPointsMax) finish(), begin();
          if (sizes.size() == kSizesMax) begin();
          ++points;
          sizes.insert(rows[i].bytes);
          if (list.back().contains("bytes")) list.back()["bytes"].push_back(rows[i].bytes);
        }
        world.rows.back().push_back(i);
      }
    }
    finish();
  }
}

std::size_t MeasuredPoints::points() const {
  std::size_t all = 0;
  for (const World& w : worlds_)
    for (const auto& rows : w.rows) all += rows.size();
  return all;
}

Campaign MeasuredPoints::campaign(const World& world, const MeasuredClusters& clusters, Engine engine) const {
  CampaignOptions options{.engine = engine, .seed = {}};
  options.load = [&](const std::filesystem::path&) { return world.mpi ? clusters.mpi : clusters.cards; };
  return make_campaign(world.scenario, options);
}

namespace {

// What the rows of a world that are of an MPI library take beside what points of a campaign do.
class MpiExtra {
 public:
  explicit MpiExtra(const SimulatedWorld& world) : memory_(mpi_memory(*world.cluster)) {
    if (!memory_) return;
    for (const Protocol& p : world.cluster->protocols())
      costs_.push_back(cost_without_loads(*world.cluster, world.cards, 1, p));
  }

  double us(const Part& part, const MeasuredAlgorithm& named, double bytes) const {
    if (!memory_) return 0;
    const Plan& plan = part.plan();
    const View view = part.largest().layout->view(0);
    MpiWork work = mpi_work(*plan.algorithm, named.library == PlannerKind::openmpi, plan.slicing.shares == 1,
                            view.all.size, view.nodes, bytes);
    // Rules choose between exchanges step by step and at once, which are one row here.
    if (!named.in_turn) work.waits = work.met = 0;
    return mpi_work_us(work, bytes / view.all.size, costs_[plan.protocol], *memory_);
  }

 private:
  std::optional<MpiMemory> memory_;
  std::vector<CostModel> costs_;  // by protocol
};

}  // namespace

// us[p]: of the campaign's point p, NaN where there is none.
void MeasuredPoints::add(const Campaign& campaign, const World& world, const std::vector<double>& us,
                         std::vector<Predicted>& to) const {
  std::map<std::pair<std::size_t, Count>, std::size_t> at;  // run and bytes
  for (std::size_t p = 0; p < campaign.points.size(); ++p)
    for (const Count bytes : campaign.points[p].asked) at[{campaign.points[p].run, bytes}] = p;
  std::vector<std::optional<MpiExtra>> extra(campaign.worlds.size());
  if (world.mpi)
    for (std::size_t w = 0; w < extra.size(); ++w) extra[w].emplace(campaign.worlds[w]);
  for (std::size_t run = 0; run < world.rows.size(); ++run)
    for (const std::size_t row : world.rows[run]) {
      const Count bytes = rows_[row].kind == Collective::barrier ? 0 : rows_[row].bytes;
      const std::size_t p = at.at({run, bytes});
      const Part& part = campaign.points[p].part();
      const auto& more = extra[campaign.points[p].world];
      const MeasuredAlgorithm& named = algorithms_[row];
      std::string_view planner;
      if (named.automatic)
        planner = part.task->algorithms.automatic ? kPlanners[std::size_t(part.task->planner)]
                  : named.mpi                     ? kPlanners[std::size_t(PlannerKind::openmpi)]
                                                  : "library";
      to.push_back({row, us[p] + (more ? more->us(part, named, double(rows_[row].bytes)) : 0), part.algorithm(),
                    part.plan().slicing,
                    campaign.worlds[campaign.points[p].world].cluster->protocols()[part.plan().protocol].name,
                    std::string(planner)});
    }
}

std::vector<Predicted> MeasuredPoints::closed(const MeasuredClusters& clusters,
                                              std::vector<SkippedRow>* skipped) const {
  std::vector<Predicted> all;
  for (const World& world : worlds_) {
    const Campaign c = campaign(world, clusters, Engine::model);
    std::vector<double> us;
    for (const Point& p : c.points) us.push_back(p.predicted_us.value_or(NAN));
    add(c, world, us, all);
  }
  std::erase_if(all, [&](const Predicted& p) {
    if (!std::isnan(p.us)) return false;
    if (skipped) skipped->push_back({rows_[p.row].at, fmt::format("\"{}\" has no closed form", p.algorithm)});
    return true;
  });
  std::sort(all.begin(), all.end(), [](const Predicted& a, const Predicted& b) { return a.row < b.row; });
  return all;
}

std::vector<Predicted> MeasuredPoints::simulated(const MeasuredClusters& clusters, Engine engine,
                                                 const Engines& engines, const RunOptions& options) const {
  std::vector<Predicted> all;
  std::size_t before = 0;
  for (const World& world : worlds_) {
    const Campaign c = campaign(world, clusters, engine);
    RunOptions each = options;
    if (options.progress)
      each.progress = [&](std::size_t done, std::size_t) { options.progress(before + done, points()); };
    const ScenarioResult result = run_campaign(c, engines, each);
    std::vector<double> us;
    for (const Json& row : result.document.at("runs")) us.push_back(row.at("time_us").get<double>());
    add(c, world, us, all);
    for (const auto& rows : world.rows) before += rows.size();
  }
  std::sort(all.begin(), all.end(), [](const Predicted& a, const Predicted& b) { return a.row < b.row; });
  return all;
}

}  // namespace gccl::sim
