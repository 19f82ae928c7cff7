#include "sim/report/channel_rings.hpp"

#include <fmt/format.h>

#include <numeric>
#include <tuple>

#include "libgccl/schedule/channel.hpp"
#include "sim/engine/link_names.hpp"

namespace gccl::sim {
namespace {

// "nic3" of "node1/nic3"; of an end of a NIC's cable, whose other end is in no node.
std::string nic_of(const std::string& end) { return LinkNames::node_of(end) ? end.substr(end.find('/') + 1) : ""; }

// The NICs by which a message leaves the sender's node and comes into the receiver's.
std::pair<std::string, std::string> nics_between(const Cluster& cluster, Card from, Card to) {
  std::vector<LinkId> route;
  cluster.route(from, to, route);
  std::pair<std::string, std::string> nics;
  for (const LinkId l : route) {
    if (cluster.links()[l].tier != Tier::leaf) continue;
    const std::string name = cluster.link_name(l);
    const auto arrow = name.find("->");
    if (const std::string nic = nic_of(name.substr(0, arrow)); !nic.empty()) nics.first = nic;
    if (const std::string nic = nic_of(name.substr(arrow + 2)); !nic.empty()) nics.second = nic;
  }
  return nics;
}

}  // namespace

std::vector<ChannelRing> rings_of_channels(const Cluster& cluster, Rank ranks) {
  std::vector<Card> cards(ranks);
  std::iota(cards.begin(), cards.end(), 0);
  const Layout layout = layout_of(cluster, cards);
  View view = layout.view(0);
  std::vector<ChannelRing> rings;
  for (const Rank channels = ChannelOrder::different(view); view.channel < channels; ++view.channel) {
    const ChannelOrder order(view);
    ChannelRing& ring = rings.emplace_back();
    for (Rank i = 0; i < ranks; ++i) ring.push_back({order[i], cluster.node_of(order[i]), {}, {}});
    for (Rank i = 0; i < ranks; ++i) {
      RingStop &here = ring[i], &next = ring[(i + 1) % ranks];
      if (here.node != next.node) std::tie(here.out, next.in) = nics_between(cluster, here.rank, next.rank);
    }
  }
  return rings;
}

std::string ring_lines(const std::vector<ChannelRing>& rings, std::size_t nodes_max) {
  std::string text;
  for (std::size_t c = 0; c < rings.size(); ++c) {
    text += fmt::format("  channel {:<3}", c);
    std::size_t nodes = 0;
    for (std::size_t i = 0; i < rings[c].size(); ++i) {
      const RingStop& stop = rings[c][i];
      if (i == 0 || stop.node != rings[c][i - 1].node) {
        if (nodes++ == nodes_max) {
          text += "  ...";
          break;
        }
        text += fmt::format("  node {}:{}", stop.node, stop.in.empty() ? "" : " " + stop.in + " >");
      }
      text += fmt::format(" {}", stop.rank);
      if (!stop.out.empty()) text += " > " + stop.out;
    }
    text += "\n";
  }
  return text;
}

}  // namespace gccl::sim
