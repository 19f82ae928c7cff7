#include "sim/measured/diagnosis/hypotheses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/measured/predict/algorithm_names.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Sockets: a message between nodes takes 20 to 40 us longer (kernel, copies through host memory), and a NIC carries
// 1 to 3 GB/s; or all of a node goes through one Ethernet port of 10 or 25 Gb/s. Assumed, not fitted to any table.
constexpr double kSocketGBps[] = {1, 2, 3}, kEthernetGBps[] = {1.2, 2.9}, kSocketNanos[] = {20'000, 40'000};
// What a card gets of PCIe: 5.0 and 4.0 x16 (cost-models/nvidia-h100.json, nvidia-a100.json), and less than half of
// the latter where cards cannot reach each other and go through host memory (cost-models/pcie-gpu.json).
constexpr double kPcieGBps[] = {51.2, 25.6, 12};
// What a card gets through host memory, where the way over PCIe is of this or that width and the processor copies or
// not; and how much longer a hop takes: RTX 4090 without peer-to-peer 2.5 us, L40S with it 1.4 to 1.6, NCCL's own
// constant for PCI 1.0 (docs/accuracy.md).
constexpr double kHostMemoryGBps[] = {12, 8, 5, 3, 2};
constexpr Nanos kHostMemoryNanos = 1500;
constexpr Nanos kPcieNanos = 300;  // with both overheads NCCL's 1.0 us (NVIDIA/nccl src/graph/tuning.cc)
constexpr unsigned kLaunchMicros[] = {15, 30, 60};
constexpr double kSlowFactors[] = {1.5, 2, 3, 4, 6, 8};
// A channel's bandwidth where the set has none: the most that NCCL's model lets one carry (LL128 on Hopper, tuning.cc).
constexpr double kChannelGBps = 36.7;

// What joins the cards of a node, by how the name that clusters' sets give the link begins: what its makers call it,
// and what shows whether it is there.
struct CardLinks {
  std::string_view link, name, check;
};
constexpr CardLinks kCardLinks[] = {
    {"nvlink", "NVLink", "nvidia-smi topo -m and nvlink --status, fabric manager"},
    {"xgmi", "xGMI", "rocm-smi --showtopo, amd-smi xgmi"},
    {"hccs", "HCCS", "npu-smi info -t topo"},
    {"", "the cards' own links", "what the cards' own tool says of the links between them"},
};

// NCCL's protocols by the hop latencies of its rings over NVLink and the network, as far as they are above those of LL
// (.6, 1.9, 3.4 us and 2.7, 4, 14 us), its base latencies (6.6, 14, 8.4 us) and the share of the bus that is payload
// (NVIDIA/nccl src/graph/tuning.cc).
Protocols nccl_protocols() {
  return {
      {.name = "LL", .operation_ns = 6600, .inside = {0, 0.5}, .network = {0, 0.5}, .in_switch = false},
      {.name = "LL128", .operation_ns = 14'000, .inside = {1300, 0.92}, .network = {1300, 0.92}, .in_switch = false},
      {.name = "Simple", .operation_ns = 8400, .inside = {2800, 1}, .network = {11'300, 1}}};
}

// A set whose protocols cost between nodes what NCCL counts for them: what a fabric's own plug-in adds is not of
// sockets, nor what it bans, LL before all. What the place of the NICs rules out stays.
Parameters over_sockets(Parameters set) {
  const bool banned =
      std::ranges::any_of(set.protocols, [](const Protocol& p) { return p.name == "LL" && !p.between_nodes; });
  for (const Protocol& theirs : nccl_protocols())
    for (Protocol& p : set.protocols)
      if (p.name == theirs.name) p.network = theirs.network, p.between_nodes = p.between_nodes || banned;
  return set;
}

Json json_of(const LinkKind& link) {
  return {{"bandwidth_GBps", link.forward.bandwidth_GBps},
          {"latency_ns", link.forward.latency_ns},
          {"reverse_bandwidth_GBps", link.reverse.bandwidth_GBps},
          {"reverse_latency_ns", link.reverse.latency_ns}};
}

LinkKind scaled(LinkKind link, double bandwidth) {
  link.forward.bandwidth_GBps *= bandwidth;
  link.reverse.bandwidth_GBps *= bandwidth;
  return link;
}

// Descriptions that differ from the cluster's in one thing.
class Changes {
 public:
  Changes(const json::Node& description, const Parameters& parameters)
      : description_(description), parameters_(parameters) {
    for (const json::Node& kind : description.at("nodes").items()) {
      const auto own = kind.find("parameters");
      const auto nics = kind.find("nics");
      nics_.push_back(nics ? unsigned(nics->at("count").integer(1, 1 << 20)) : 0);
      ports_.push_back(nics ? read_link(nics->at("port"), own ? read_parameters(*own) : parameters) : LinkKind{});
    }
  }

  unsigned most_nics() const { return *std::max_element(nics_.begin(), nics_.end()); }
  double port_GBps() const {
    double most = 0;
    for (const LinkKind& port : ports_) most = std::max(most, port.forward.bandwidth_GBps);
    return most;
  }
  bool joined_by_nics() const {
    return description_.has("fabric") && std::all_of(nics_.begin(), nics_.end(), [](unsigned n) { return n > 0; });
  }

  std::shared_ptr<const Cluster> same(const Parameters& parameters) const {
    return read_cluster(description_, parameters);
  }
  std::shared_ptr<const Cluster> ports(const std::function<LinkKind(LinkKind, unsigned nics)>& change) const {
    Json d = copy();
    for (std::size_t k = 0; k < nics_.size(); ++k) d["nodes"][k]["nics"]["port"] = json_of(change(ports_[k], nics_[k]));
    return read(d);
  }
  // So many NICs of each node; where the description does not let them be taken away, the others' ports are as narrow.
  std::shared_ptr<const Cluster> nics(unsigned left) const {
    Json d = copy();
    for (std::size_t k = 0; k < nics_.size(); ++k) {
      if (nics_[k] <= left) continue;
      Json& nics = d["nodes"][k]["nics"];
      nics["count"] = left;
      if (nics.contains("cards")) nics["cards"] = joined(nics["cards"], left);
    }
    try {
      return read(d);
    } catch (const json::InputError&) {
      return ports([&](const LinkKind& port, unsigned n) { return scaled(port, std::min(1.0, double(left) / n)); });
    }
  }
  std::shared_ptr<const Cluster> slow_first_node(double factor) const {
    Json d = copy();
    Json slow = d["nodes"][0];
    slow["count"] = 1;
    slow["nics"]["port"] = json_of(scaled(ports_[0], 1 / factor));
    if (const std::int64_t others = d["nodes"][0]["count"].get<std::int64_t>() - 1; others > 0)
      d["nodes"][0]["count"] = others;
    else
      d["nodes"].erase(0);
    d["nodes"].insert(d["nodes"].begin(), slow);
    return read(d);
  }
  // Of the first of its interconnects inside nodes that is more than PCIe.
  const CardLinks& card_links() const {
    const std::string link = first_direct_link();
    return *std::ranges::find_if(kCardLinks, [&](const CardLinks& l) { return link.starts_with(l.link); });
  }
  // Cards of a node that reach each other over PCIe alone; null where they do already, or it is not known how they do.
  std::shared_ptr<const Cluster> pcie(double GBps) const {
    Json d = copy();
    bool changed = false;
    for (Json& kind : d["nodes"]) {
      if (!kind.contains("inside")) continue;
      Json& inside = kind["inside"];
      if (!inside.is_array()) inside = Json::array({inside});
      Json trees = Json::array();
      std::size_t direct = 0;
      for (const Json& one : inside) {
        if (one["kind"] == "pcie_tree") trees.push_back(one);
        direct += joins_directly(one);
      }
      if (direct == 0) continue;
      if (direct + trees.size() != inside.size()) return nullptr;
      const Json link = {{"bandwidth_GBps", GBps}, {"latency_ns", kPcieNanos}};
      if (!trees.empty())
        for (Json& tree : trees) tree["card_link"] = link;
      else
        trees.push_back({{"kind", "switch"}, {"link", link}});
      inside = trees;
      changed = true;
    }
    return changed ? read(d) : nullptr;
  }
  // Cards behind PCIe switches that reach each other through host memory alone; null where they do not stand behind
  // such, or would not be slower.
  std::shared_ptr<const Cluster> host_memory(double GBps) const {
    Json d = copy();
    bool changed = false;
    for (std::size_t k = 0; k < d["nodes"].size(); ++k) {
      Json& kind = d["nodes"][k];
      if (!kind.contains("inside")) continue;
      const auto own = description_.at("nodes").items()[k].find("parameters");
      for (Json* tree : trees_of(kind["inside"])) {
        LinkKind link = read_link(json::Node::parse((*tree)["card_link"].dump(), description_.file()),
                                  own ? read_parameters(*own) : parameters_);
        if (link.forward.bandwidth_GBps <= GBps) return nullptr;
        link = scaled(link, GBps / link.forward.bandwidth_GBps);
        link.forward.latency_ns += kHostMemoryNanos / 2;  // a message passes two of them
        link.reverse.latency_ns += kHostMemoryNanos / 2;
        (*tree)["card_link"] = json_of(link);
        changed = true;
      }
    }
    return changed ? read(d) : nullptr;
  }

 private:
  static bool joins_directly(const Json& inside) {
    const Json& kind = inside["kind"];
    return kind == "switch" || kind == "full_mesh" || kind == "ring";
  }
  // By name; empty where it has none, or there is none.
  std::string first_direct_link() const {
    for (const Json& kind : description_.raw()["nodes"]) {
      const Json inside = kind.value("inside", Json::array());
      for (const Json& one : inside.is_array() ? inside : Json::array({inside}))
        if (joins_directly(one)) return one["link"].is_string() ? one["link"].get<std::string>() : "";
    }
    return "";
  }
  // Empty where anything else joins cards, too.
  static std::vector<Json*> trees_of(Json& inside) {
    std::vector<Json*> trees;
    const auto add = [&](Json& one) {
      const bool tree = one["kind"] == "pcie_tree";
      if (tree) trees.push_back(&one);
      return tree || one["kind"] == "none";
    };
    if (!inside.is_array()) return add(inside) ? trees : std::vector<Json*>{};
    for (Json& one : inside)
      if (!add(one)) return {};
    return trees;
  }
  Json copy() const {
    Json d = description_.raw();
    d.erase("sources");  // they may point to what is not there any more
    return d;
  }
  std::shared_ptr<const Cluster> read(const Json& d) const {
    return read_cluster(json::Node::parse(d.dump(), description_.file()), parameters_);
  }
  static Json joined(const Json& lists, unsigned left) {
    std::vector<std::set<unsigned>> cards(left);
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (const Json& card : lists[i]) cards[i % left].insert(card.get<unsigned>());
    return cards;
  }

  const json::Node& description_;
  const Parameters& parameters_;
  std::vector<unsigned> nics_;   // of each kind of node
  std::vector<LinkKind> ports_;  // likewise
};

void add_network_causes(const Changes& changes, const Changes& sockets, std::vector<Hypothesis>& to) {
  const unsigned nics = changes.most_nics();
  Hypothesis few{"nics",
                 "not all NICs of a node used",
                 "NCCL_DEBUG=INFO: how many NICs does \"NET/IB : Using\" list? NCCL_IB_HCA, NCCL_CROSS_NIC, links that "
                 "are down (ibstat), NCCL_TOPO_DUMP_FILE",
                 {}};
  for (unsigned left = 1; left < nics; left *= 2)
    few.variants.push_back({fmt::format("{} of {} NICs", left, nics), changes.nics(left)});
  if (!few.variants.empty()) to.push_back(std::move(few));

  Hypothesis tcp{
      "tcp",
      "TCP instead of RDMA",
      "NCCL_DEBUG=INFO: \"NET/Socket\" where \"NET/IB\" or \"NET/OFI\" should stand; the network plug-in and "
      "its library path, NCCL_IB_DISABLE, NCCL_NET, /dev/infiniband in the container",
      {}};
  const auto add_tcp = [&](double GBps, bool one_port, double latency) {
    if (GBps >= changes.port_GBps()) return;
    const auto port = [&](LinkKind p, unsigned n) {
      p.forward.bandwidth_GBps = p.reverse.bandwidth_GBps = one_port ? GBps / n : GBps;
      p.forward.latency_ns += Nanos(latency / 2);  // a message passes two ports
      p.reverse.latency_ns += Nanos(latency / 2);
      return p;
    };
    tcp.variants.push_back(
        {fmt::format("{} GB/s a {}, {:.0f} us more a message", GBps, one_port ? "node" : "NIC", latency / 1e3),
         sockets.ports(port)});
  };
  for (const double latency : kSocketNanos) {
    for (const double GBps : kSocketGBps) add_tcp(GBps, false, latency);
    for (const double GBps : kEthernetGBps) add_tcp(GBps, true, latency);
  }
  if (!tcp.variants.empty()) to.push_back(std::move(tcp));

  Hypothesis slow{"slow_node",
                  "one slow node",
                  "run on halves of the nodes until one is left; its NICs' rate and width (ibstat, lspci -vv: LnkSta), "
                  "error counters",
                  {}};
  for (const double factor : kSlowFactors)
    slow.variants.push_back({fmt::format("its ports {} times slower", factor), changes.slow_first_node(factor)});
  to.push_back(std::move(slow));
}

// With a variant for each rate of a card at which the cluster can be so; none, no hypothesis.
template <class Changed>
void add_rates(Hypothesis h, std::span<const double> rates, Changed changed, std::vector<Hypothesis>& to) {
  for (const double GBps : rates)
    if (auto cluster = changed(GBps)) h.variants.push_back({fmt::format("{} GB/s a card", GBps), cluster});
  if (!h.variants.empty()) to.push_back(std::move(h));
}

void add_pcie(const Changes& changes, std::vector<Hypothesis>& to) {
  const CardLinks& links = changes.card_links();
  Hypothesis h{"pcie",
               fmt::format("PCIe instead of {}", links.name),
               fmt::format("{}; NCCL_DEBUG=INFO: \"via P2P\" or \"via SHM\"; NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, access "
                           "control (ACS)",
                           links.check),
               {}};
  add_rates(
      std::move(h), kPcieGBps, [&](double GBps) { return changes.pcie(GBps); }, to);
}

void add_host_memory(const Changes& changes, std::vector<Hypothesis>& to) {
  Hypothesis h{"host_memory",
               "no peer-to-peer between cards",
               "NCCL_DEBUG=INFO: \"via SHM\" where \"via P2P\" should stand; nvidia-smi topo -p2p r, NCCL_P2P_DISABLE, "
               "NCCL_P2P_LEVEL, access control (ACS), IOMMU; consumer cards have none",
               {}};
  add_rates(
      std::move(h), kHostMemoryGBps, [&](double GBps) { return changes.host_memory(GBps); }, to);
}

void add_one_channel(const Changes& changes, Parameters parameters, std::vector<Hypothesis>& to) {
  parameters.nccl.nvls = false;  // NCCL uses multicast only in several channels
  for (Protocol& p : parameters.protocols) {
    p.channels_max = 1;
    if (p.channel_GBps == 0) p.channel_GBps = kChannelGBps;
  }
  to.push_back({"channels",
                "no channel parallelism",
                "NCCL_DEBUG=INFO: number of channels (\"coll channels\"); NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS, "
                "NCCL_MIN_NCHANNELS",
                {{"one channel", changes.same(parameters)}}});
}

// A process that drives all cards of a node launches for one after the other: 25 to 40 us more a call on eight MI300X,
// 23 us on H100 (docs/accuracy.md).
void add_launch(const Changes& changes, const Parameters& parameters, std::vector<Hypothesis>& to) {
  Hypothesis h{
      "launch",
      "launches take longer",
      "does one process drive several cards (nThread, nGpus in the log's head)? A process for each card, graphs "
      "(-G 1); a profiler, the processors' frequency, affinity and load",
      {}};
  for (const unsigned us : kLaunchMicros) {
    Parameters late = parameters;
    for (Protocol& p : late.protocols) p.operation_ns += us * 1000;
    h.variants.push_back({fmt::format("{} us more a call", us), changes.same(late)});
  }
  to.push_back(std::move(h));
}

// Each algorithm and each protocol that all sizes might be served by, where rows leave the choice to the library.
void add_choices(const Changes& changes, const Parameters& parameters, const std::vector<Measurement>& rows,
                 std::vector<Hypothesis>& to) {
  const auto cluster = changes.same(parameters);
  std::set<Collective> kinds;
  for (const Measurement& m : rows)
    if (measured_algorithm(m.kind, m.algorithm).automatic) kinds.insert(m.kind);
  Hypothesis algorithm{"algorithm",
                       "wrong algorithm for the size",
                       "NCCL_ALGO, a tuner plug-in or its file, OMPI_MCA_coll_tuned_*: NCCL_DEBUG=INFO with "
                       "NCCL_DEBUG_SUBSYS=TUNING says what was chosen",
                       {}};
  std::vector<Card> node;  // the first one's
  for (Card c = 0; c < cluster->cards() && cluster->node_of(c) == cluster->node_of(0); ++c) node.push_back(c);
  const bool switches = cluster->in_switch(node) > 0;
  std::set<std::string_view> seen;
  for (const Algorithm& a : algorithms())
    if (kinds.count(a.kind) && !a.variant && a.cost && (!a.in_switch || switches) && seen.insert(a.name).second)
      algorithm.variants.push_back({fmt::format("{} for all sizes", a.name), cluster, std::string(a.name)});
  if (algorithm.variants.size() > 1) to.push_back(std::move(algorithm));

  Hypothesis protocol{"protocol",
                      "wrong protocol for the size",
                      "NCCL_PROTO, NCCL_LL_THRESHOLD, a tuner plug-in: NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING "
                      "says what was chosen",
                      {}};
  const bool stated = std::any_of(rows.begin(), rows.end(),
                                  [](const Measurement& m) { return !m.protocol.empty() && m.protocol != "auto"; });
  const bool crosses = std::ranges::any_of(rows, [](const Measurement& m) { return m.nodes > 1; });
  if (parameters.protocols.size() > 1 && !stated)
    for (Protocol p : parameters.protocols) {
      if (crosses && !p.between_nodes) continue;
      Parameters alone = parameters;
      p.bytes_max = Protocol().bytes_max;
      alone.protocols = {p};
      protocol.variants.push_back({fmt::format("{} for all sizes", p.name), changes.same(alone)});
    }
  if (!protocol.variants.empty()) to.push_back(std::move(protocol));
}

std::vector<Hypothesis> hypotheses_with(const json::Node& description, const Parameters& parameters,
                                        const std::vector<Measurement>& rows) {
  const Changes changes(description, parameters);
  std::vector<Hypothesis> all{{"healthy", "healthy", "", {{"", changes.same(parameters)}}}};
  if (changes.joined_by_nics()) {
    const Parameters sockets = over_sockets(parameters);
    add_network_causes(changes, Changes(description, sockets), all);
  }
  add_pcie(changes, all);
  add_host_memory(changes, all);
  add_one_channel(changes, parameters, all);
  const auto by_mpi = [](const Measurement& m) { return measured_algorithm(m.kind, m.algorithm).mpi; };
  if (!std::ranges::all_of(rows, by_mpi)) add_launch(changes, parameters, all);
  add_choices(changes, parameters, rows, all);
  return all;
}

}  // namespace

std::vector<Hypothesis> hypotheses_of(const json::Node& description, const Parameters& parameters,
                                      const std::vector<Measurement>& rows) {
  std::vector<Parameters> sets{parameters};
  std::vector<std::string> planners{"library"};
  const bool mpi = std::any_of(rows.begin(), rows.end(), [](const Measurement& m) {
    return measured_algorithm(m.kind, m.algorithm).library == PlannerKind::openmpi;
  });
  if (parameters.nccl.architecture && !mpi) {
    planners = {"nccl", "gccl"};
    if (parameters.protocols[0].name.empty()) {
      sets.push_back(parameters);
      sets.back().protocols = nccl_protocols();
    }
  }
  std::vector<Hypothesis> all;
  for (std::size_t set = 0; set < sets.size(); ++set)
    for (const Hypothesis& h : hypotheses_with(description, sets[set], rows)) {
      auto to = std::find_if(all.begin(), all.end(), [&](const Hypothesis& o) { return o.name == h.name; });
      if (to == all.end()) to = all.insert(all.end(), {h.name, h.title, h.check, {}});
      for (std::size_t planner = 0; planner < planners.size(); ++planner)
        for (Variant v : h.variants) {
          if (!v.algorithm.empty() && planner > 0) continue;  // no planner is asked
          // With one channel GCCL's planner leaves rings for switches, which no channel limits.
          if (h.name == "channels" && planners[planner] == "gccl") continue;
          v.planner = planners[planner];
          v.model = set * planners.size() + planner;
          to->variants.push_back(std::move(v));
        }
    }
  return all;
}

}  // namespace gccl::sim
