#include "libgccl/cluster/cost_model.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "libgccl/cluster/link_loads.hpp"
#include "libgccl/cluster/part.hpp"
#include "libgccl/schedule/channel.hpp"

namespace gccl {
namespace {

// Nodes looked at where there are more.
constexpr std::size_t kNodesLookedAt = 4096;
// Where latency and bandwidth disagree, the slower of two hops is the one that takes longer for this many bytes.
constexpr double kTypicalBytes = 1 << 20;

Hop slower(const Hop& a, const Hop& b) { return a(kTypicalBytes) >= b(kTypicalBytes) ? a : b; }

// The cards by node, in the order of their first ranks.
Groups by_node(const Cluster& cluster, const std::vector<Card>& cards) {
  Groups nodes;
  std::unordered_map<Rank, std::size_t> place;
  for (const Card c : cards) {
    const auto [it, fresh] = place.try_emplace(cluster.node_of(c), nodes.size());
    if (fresh) nodes.emplace_back();
    nodes[it->second].push_back(c);
  }
  return nodes;
}

// Group p: card p of every node.
Groups rails_of(const Groups& nodes) {
  Groups rails;
  std::size_t places = nodes[0].size();
  for (const auto& n : nodes) places = std::min(places, n.size());
  for (std::size_t p = 0; p < places; ++p) {
    rails.emplace_back();
    for (const auto& n : nodes) rails.back().push_back(n[p]);
  }
  return rails;
}

// Channels whose rings are looked at: a scenario's most.
constexpr Rank kChannelsLookedAt = 64;

// What loads are worked out from.
struct Ranks {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Card> cards;
  std::shared_ptr<const Groups> whole, nodes, rails;  // all of them in `order`; by node; by place
  std::shared_ptr<const std::vector<Rank>> begin;     // of nodes whose ranks follow each other, and the end; else none
  Rank root;                                          // where chains begin

  Ranks(std::shared_ptr<const Cluster> c, const std::vector<Card>& on, std::span<const Rank> order)
      : cluster(std::move(c)), cards(on), root(order.empty() ? 0 : order[0]) {
    Groups n = by_node(*cluster, cards);
    std::vector<Rank> first{0};
    bool follow = true;
    for (std::size_t k = 0, r = 0; k < n.size(); ++k) {
      for (const Card card : n[k]) follow = cards[r++] == card && follow;
      first.push_back(Rank(r));
    }
    if (!follow) first.clear();
    begin = std::make_shared<const std::vector<Rank>>(std::move(first));
    std::vector<Card> all = cards;
    for (std::size_t i = 0; i < order.size(); ++i) all[i] = cards[order[i]];
    whole = std::make_shared<const Groups>(Groups{std::move(all)});
    rails = std::make_shared<const Groups>(rails_of(n));
    nodes = std::make_shared<const Groups>(std::move(n));
  }
};

// `chains`: also those of the chains from that rank on, which have no message that closes the ring.
std::vector<RingLoads> rings_of(const Part& cluster, const std::vector<Card>& cards, std::optional<Rank> chains) {
  std::vector<RingLoads> rings;
  const Layout layout = layout_of(cluster.whole(), cards);
  View v = layout.view(0);
  Messages messages(cluster), chain(cluster), back(cluster);
  for (const Rank most = std::min(ChannelOrder::different(v), kChannelsLookedAt); v.channel < most;) {
    const ChannelOrder order(v);
    for (Rank i = 0; i < order.size; ++i) {
      const Card from = cards[order[i]], to = cards[order[i + 1]];
      messages.add(from, to);
      if (!chains || order[i + 1] == *chains) continue;
      chain.add_last_of(messages, from, to, 1);
      back.add(to, from);
    }
    if (++v.channel != most && !std::has_single_bit(v.channel)) continue;
    rings.push_back(ring_of(messages, v.channel));
    // Channels drift apart, and then share links without meeting on them.
    if (rings.size() == 1) rings[0].way = way_round(messages, 0, order.size);
    rings.back().next = rings[0].next;
    rings.back().way = rings[0].way;
    rings.back().chain = {chain.mean(false), chain.alone(), chain.busiest_ns()};
    rings.back().back = {back.mean(false), back.alone(), back.busiest_ns()};
  }
  return rings;
}

// While every node's ring hands a node's blocks round and every rail's ring one on.
double two_level_rings(const Part& cluster, const Groups& nodes, const Groups& rails) {
  Messages rings(cluster);
  for (const auto& g : nodes)
    for (std::size_t i = 0; i < g.size() * (g.size() - 1); ++i) rings.add(g[i % g.size()], g[(i + 1) % g.size()]);
  for (const auto& g : rails)
    for (std::size_t i = 0; i < g.size(); ++i) rings.add(g[i], g[(i + 1) % g.size()]);
  return rings.busiest_ns();
}

void add_loads(std::shared_ptr<const Ranks> ranks, std::shared_ptr<const Part> part, bool chains, CostModel& m) {
  const Groups& nodes = *ranks->nodes;
  const auto alone = std::make_shared<const std::vector<Rank>>();
  m.all = loads_of(part, ranks->whole, ranks->begin);
  m.rings = OnDemand<std::vector<RingLoads>>(
      [=] { return rings_of(*part, ranks->cards, chains ? std::optional(ranks->root) : std::nullopt); });
  m.doubling = OnDemand<Hop>([=] { return doubling_way(*part, ranks->cards); });
  m.inside = loads_of(part, ranks->nodes, alone);
  m.rail = loads_of(part, ranks->rails, alone);
  if (nodes.size() == 1 || nodes.size() == ranks->cards.size()) return;
  m.rings_ns_per_byte = OnDemand<double>([=] { return two_level_rings(*part, *ranks->nodes, *ranks->rails); });
}

// What can be busiest by itself, each as a part: the links of each bandwidth inside nodes, and those between nodes. A
// card's way to its NIC and its way to the other cards are busy in different steps, so they are never one part, though
// both are inside. Left out are links whose every message also takes one and the same narrower link, as a NIC's bus
// does its port: they are never the busiest. Looked at are the messages inside nodes and between neighbours, both ways:
// a torus's links back may be narrower.
std::vector<Part::Kept> link_parts(const Cluster& cluster, const Groups& nodes) {
  const Links& links = cluster.links();
  std::unordered_map<LinkId, std::vector<LinkId>> narrower;  // of each link inside nodes
  std::vector<LinkId> route;
  const auto look = [&](Card from, Card to) {
    if (from == to) return;
    cluster.route(from, to, route);
    for (const LinkId l : route) {
      if (!inside_nodes(links[l])) continue;
      const auto [at, fresh] = narrower.try_emplace(l);
      if (fresh)
        std::ranges::copy_if(route, std::back_inserter(at->second),
                             [&](LinkId n) { return links[n].bandwidth_GBps < links[l].bandwidth_GBps; });
      else
        std::erase_if(at->second, [&](LinkId n) { return std::ranges::find(route, n) == route.end(); });
    }
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const auto &here = nodes[k], &next = nodes[(k + 1) % nodes.size()];
    for (std::size_t i = 0; i < here.size(); ++i) {
      for (const Card other : here) look(here[i], other);
      for (const std::size_t place : {i, i + 1}) {
        const Card other = next[place % next.size()];
        look(here[i], other);
        look(other, here[i]);
      }
    }
  }
  std::vector<double> bandwidths;
  for (const auto& [l, others] : narrower)
    if (others.empty()) bandwidths.push_back(links[l].bandwidth_GBps);
  std::ranges::sort(bandwidths);
  bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  std::vector<Part::Kept> parts;
  for (const double b : bandwidths) parts.push_back({.links = Part::Kept::Links::inside, .bandwidth_GBps = b});
  parts.push_back({.links = Part::Kept::Links::network});
  return parts;
}

// Where forms take every message between nodes for one of m.net: the latency in the mean over the nodes 2^k further on,
// which the steps of trees, of doubling and of halving take one after the other. On a torus few are far.
void take_mean_latency(const Part& cluster, const std::vector<Card>& cards, CostModel& m) {
  const Groups nodes = by_node(cluster.whole(), cards);
  std::vector<LinkId> route;
  double sum = 0, steps = 0;
  for (std::size_t n = 1; n < nodes.size(); n *= 2) {
    cluster.route(nodes[0][0], nodes[n][0], route);
    sum += hop_over(cluster, nodes[0][0], nodes[n][0], route).alpha_ns;
    ++steps;
  }
  if (steps == 0) return;
  m.net.alpha_ns = m.net_all.alpha_ns = sum / steps;
  if (nodes.size() == cards.size()) m.node = m.net;
}

double inverse(double GBps) { return GBps > 0 ? 1 / GBps : 0; }

CostModel without_loads(const Part& cluster, const std::vector<Card>& cards, unsigned element_bytes) {
  CostModel m;
  m.element_bytes = element_bytes;
  if (cards.empty()) return m;

  for (const Card c : cards) {
    const CardCosts costs = cluster.costs(c);
    m.overhead_ns = std::max(m.overhead_ns, double(costs.overhead_ns));
    m.receive_overhead_ns = std::max(m.receive_overhead_ns, double(costs.receive_overhead_ns));
    m.combine_ns_per_byte = std::max(m.combine_ns_per_byte, inverse(costs.combine_GBps));
    m.copy_ns_per_byte = std::max(m.copy_ns_per_byte, inverse(costs.copy_GBps));
  }
  const Groups nodes = by_node(cluster.whole(), cards);
  m.node = m.net = m.net_all = {.alpha_ns = m.overhead_ns + m.receive_overhead_ns, .beta_ns_per_byte = 0};

  std::vector<LinkId> route;
  // The fullest node: its first card to each other one.
  const auto& full =
      *std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (std::size_t i = 1; i < full.size(); ++i) {
    cluster.route(full[0], full[i], route);
    m.node = slower(m.node, hop_over(cluster, full[0], full[i], route));
  }
  double efficiency = full.size() > 1 ? 1 : 0;
  for (const auto& n : nodes)
    if (n.size() > 1) efficiency = std::min(efficiency, cluster.whole().in_switch(n));
  if (efficiency > 0) m.node_switch = {m.node.alpha_ns, m.node.beta_ns_per_byte / efficiency};
  if (nodes.size() == 1) {
    m.net = m.net_all = m.node;
    return m;
  }

  // The node that is farthest from the first one. Those looked at are spread by the golden ratio: at equal distances,
  // which may be a torus's row, all would be in one column.
  const auto& near = nodes[0];
  std::size_t far = 1, most_links = 0;
  const std::size_t others = nodes.size() - 1;
  std::size_t stride = others <= kNodesLookedAt ? 1 : std::size_t(0.618034 * double(others));
  while (std::gcd(stride, others) != 1) ++stride;
  for (std::size_t s = 0; s < std::min(others, kNodesLookedAt); ++s) {
    const std::size_t n = 1 + s * stride % others;
    cluster.route(near[0], nodes[n][0], route);
    if (route.size() > most_links) far = n, most_links = route.size();
  }
  cluster.route(near[0], nodes[far][0], route);
  m.net = hop_over(cluster, near[0], nodes[far][0], route);

  std::unordered_map<LinkId, double> load;
  std::vector<std::vector<LinkId>> routes;
  for (std::size_t i = 0; i < near.size(); ++i) {
    cluster.route(near[i], nodes[far][i % nodes[far].size()], route);
    for (const LinkId l : route) load[l] += 1 / cluster.way(near[i], nodes[far][i % nodes[far].size()]).efficiency;
    routes.push_back(route);
  }
  m.net_all = m.net;
  for (std::size_t i = 0; i < near.size(); ++i) {
    Hop hop = hop_over(cluster, near[i], nodes[far][i % nodes[far].size()], routes[i]);
    for (const LinkId l : routes[i])
      hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, load[l] / cluster.bandwidth_GBps(l));
    m.net_all = slower(m.net_all, hop);
  }
  if (full.size() == 1) m.node = m.net;
  return m;
}

}  // namespace

CostModel cost_without_loads(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                             const Protocol& protocol) {
  CostModel m = without_loads(Part(not_held(cluster), protocol), cards, element_bytes);
  m.protocol = protocol;
  m.eager_bytes = double(cluster.eager_bytes());
  return m;
}

namespace {

// As CostModel::parts has them.
std::vector<CostModel> parts_of(std::shared_ptr<const Ranks> ranks, unsigned element_bytes, const Protocol& protocol,
                                double receive_overhead_ns) {
  std::vector<CostModel> parts;
  parts.push_back(without_loads(Part(ranks->cluster, protocol, {.handling = true}), ranks->cards, element_bytes));
  parts.back().receive_overhead_ns = receive_overhead_ns;  // what a rank that only receives handles
  parts.push_back(without_loads(Part(ranks->cluster, protocol, {.memory = true}), ranks->cards, element_bytes));
  std::vector<Part::Kept> links{{.links = Part::Kept::Links::all}};
  if (ranks->nodes->size() > 1) links = link_parts(*ranks->cluster, *ranks->nodes);
  for (const Part::Kept& kept : links) {
    const auto part = std::make_shared<const Part>(ranks->cluster, protocol, kept);
    parts.push_back(without_loads(*part, ranks->cards, element_bytes));
    add_loads(ranks, part, false, parts.back());
    parts.back().links_alone = true;
  }
  return parts;
}

}  // namespace

CostModel cost_model(std::shared_ptr<const Cluster> cluster, const std::vector<Card>& cards, unsigned element_bytes,
                     const Protocol& protocol, std::span<const Rank> order) {
  CostModel m = cost_without_loads(*cluster, cards, element_bytes, protocol);
  if (cards.size() < 2) return m;
  if (cards.size() > kTrafficCardsMax) {
    take_mean_latency(Part(cluster, protocol), cards, m);
    return m;
  }
  const auto ranks = std::make_shared<const Ranks>(cluster, cards, order);
  add_loads(ranks, std::make_shared<const Part>(cluster, protocol), true, m);
  m.parts = OnDemand<std::vector<CostModel>>(
      [=, receive = m.receive_overhead_ns] { return parts_of(ranks, element_bytes, protocol, receive); });
  return m;
}

CostModel cost_model(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                     const Protocol& protocol, std::span<const Rank> order) {
  return cost_model(not_held(cluster), cards, element_bytes, protocol, order);
}

std::optional<Hop> net_loaded(const Cluster& cluster, const std::vector<Card>& cards) {
  const Groups nodes = by_node(cluster, cards);
  if (nodes.size() < 2 || cards.size() > kTrafficCardsMax) return std::nullopt;
  return shift_of(shifted(Part(not_held(cluster), {}), rails_of(nodes), std::bit_floor(nodes.size() - 1)));
}

}  // namespace gccl
