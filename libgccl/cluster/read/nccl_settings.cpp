#include "libgccl/cluster/read/nccl_settings.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "libgccl/cluster/composed.hpp"
#include "libgccl/select/others/nccl_graph.hpp"
#include "libgccl/select/others/other_planners.hpp"

namespace gccl {
namespace {

constexpr double kNcclGBpsMax = 1e6, kNcclUsMax = 1e6;
constexpr unsigned kNcclChannelsMax = 64;
constexpr std::array<std::string_view, 3> kNcclProcessors{"intel", "amd", "arm"};  // AMD's alone differ for NCCL
constexpr std::size_t kNcclAmd = 1;

}  // namespace

void read_nccl(const json::Node& v, NcclSettings& s) {
  v.allow({"architecture", "card_GBps", "nic_GBps", "channels", "bandwidth_GBps", "between_GBps", "nvls", "collnet",
           "net_latency_us", "processor", "source"});
  if (const auto source = v.find("source")) source->string();
  if (const auto n = v.find("architecture")) s.architecture = NcclArchitecture(n->one_of(kNcclArchitectures));
  const auto number = [&](std::string_view key, double most, std::optional<double>& to) {
    if (const auto n = v.find(key)) to = n->number(0, most);
  };
  number("card_GBps", kNcclGBpsMax, s.card_GBps);
  number("nic_GBps", kNcclGBpsMax, s.nic_GBps);
  number("bandwidth_GBps", kNcclGBpsMax, s.inside_GBps);
  number("between_GBps", kNcclGBpsMax, s.between_GBps);
  number("net_latency_us", kNcclUsMax, s.net_latency_us);
  if (const auto n = v.find("processor")) s.amd = n->one_of(kNcclProcessors) == kNcclAmd;
  if (const auto n = v.find("channels")) s.channels = unsigned(n->integer(1, kNcclChannelsMax));
  if (const auto n = v.find("nvls")) s.nvls = n->boolean();
  if (const auto n = v.find("collnet")) s.collnet = n->boolean();
  if (s.channels.has_value() != s.inside_GBps.has_value())
    v.fail("expected \"channels\" and \"bandwidth_GBps\" (of each of them) together");
  if (s.between_GBps && !s.channels) v.at("between_GBps").fail("expected \"channels\" and \"bandwidth_GBps\" with it");
}

std::optional<NcclMachine> nccl_machine(const Cluster& cluster, const std::vector<Card>& cards) {
  const auto* composed = dynamic_cast<const ComposedCluster*>(&cluster);
  if (!composed || !composed->parts().nccl.architecture || cards.empty()) return std::nullopt;
  const NcclSettings& s = composed->parts().nccl;
  std::map<Rank, std::vector<Card>> by_node;
  for (const Card c : cards) by_node[cluster.node_of(c)].push_back(c);
  NcclLinks links{.architecture = *s.architecture, .nodes = unsigned(by_node.size())};
  links.cards = links.nics = ~0u, links.card_GBps = links.nic_GBps = kNcclGBpsMax;
  NcclMachine m;
  m.architecture = *s.architecture;
  m.nodes = links.nodes, m.ranks = unsigned(cards.size());
  m.nvlink = true;
  bool multicast = s.nvls.value_or(m.architecture >= NcclArchitecture::hopper), pairwise = false;
  // NCCL's channels are those of the node that has fewest.
  for (const auto& [node, on_node] : by_node) {
    const NodeType& type = composed->type_of(node);
    const Card first = composed->first_card(node);
    std::set<unsigned> nics;
    for (const Card c : on_node)
      if (c - first < type.own.size()) nics.insert(type.own[c - first].begin(), type.own[c - first].end());
    links.cards = std::min(links.cards, unsigned(on_node.size()));
    links.nics = std::min(links.nics, unsigned(nics.size()));
    links.card_GBps = std::min(links.card_GBps, s.card_GBps.value_or(type.card_GBps));
    for (const unsigned nic : nics)
      links.nic_GBps = std::min(links.nic_GBps, s.nic_GBps.value_or(type.ports[nic].forward.bandwidth_GBps));
    pairwise = pairwise || (type.inside.starts_with("full_mesh") && on_node.size() > 2);
    // Cards that are joined by PCIe alone.
    if (type.inside.starts_with("pcie")) m.nvlink = false;
    multicast = multicast && type.in_switch > 0 && on_node.size() > 2;
  }
  m.graph = nccl_ring_graph(links);
  if (s.channels) m.graph = {*s.channels, *s.inside_GBps, s.between_GBps.value_or(*s.inside_GBps)};
  m.tree = nccl_tree_graph(links, m.graph);
  if (multicast) m.nvls = nccl_nvls_graph(links);
  m.collnet = s.collnet.value_or(false);
  m.same_channels = m.nodes == 1 ? !pairwise : links.nics <= 1;
  m.simple_tree = m.nodes > 1 && (m.architecture >= NcclArchitecture::hopper || m.ranks == m.nodes);
  for (const Protocol& p : cluster.protocols())
    if (const auto theirs = nccl_protocol(p.name)) m.between_nodes[std::size_t(*theirs)] = p.between_nodes;
  m.net_latency_us = s.net_latency_us.value_or(0);
  m.amd = s.amd.value_or(false);
  return m;
}

}  // namespace gccl
