#include "sim/cluster/cost_model.hpp"

#include <algorithm>
#include <unordered_map>

namespace gccl::sim {
namespace {

// Nodes and cards looked at where a cluster has more: enough to meet every distance of a regular fabric.
constexpr std::size_t kSamples = 256;
// Where latency and bandwidth disagree, the slower of two hops is the one that takes longer for this many bytes.
constexpr double kTypicalBytes = 1 << 20;

Hop hop_over(const Cluster& cluster, Card from, Card to, const std::vector<LinkId>& route) {
  Hop hop{.alpha_ns = double(cluster.costs(from).overhead_ns + cluster.costs(to).receive_overhead_ns),
          .beta_ns_per_byte = 0};
  for (const LinkId l : route) {
    const Link& link = cluster.links()[l];
    hop.alpha_ns += double(link.latency_ns);
    hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, 1 / link.bandwidth_GBps);
  }
  return hop;
}

Hop slower(const Hop& a, const Hop& b) { return a(kTypicalBytes) >= b(kTypicalBytes) ? a : b; }

double inverse(double GBps) { return GBps > 0 ? 1 / GBps : 0; }

}  // namespace

CostModel cost_model(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes) {
  CostModel m;
  m.element_bytes = element_bytes;
  if (cards.empty()) return m;

  std::vector<std::vector<Card>> nodes;  // the cards by node, in the order of their first ranks
  std::unordered_map<Rank, std::size_t> place;
  for (const Card c : cards) {
    const CardCosts& costs = cluster.costs(c);
    m.overhead_ns = std::max(m.overhead_ns, double(costs.overhead_ns));
    m.receive_overhead_ns = std::max(m.receive_overhead_ns, double(costs.receive_overhead_ns));
    m.combine_ns_per_byte = std::max(m.combine_ns_per_byte, inverse(costs.combine_GBps));
    m.copy_ns_per_byte = std::max(m.copy_ns_per_byte, inverse(costs.copy_GBps));
    const auto [it, fresh] = place.try_emplace(cluster.node_of(c), nodes.size());
    if (fresh) nodes.emplace_back();
    nodes[it->second].push_back(c);
  }
  m.node = m.net = m.net_all = {.alpha_ns = m.overhead_ns + m.receive_overhead_ns, .beta_ns_per_byte = 0};

  std::vector<LinkId> route;
  // The fullest node: its first card to each other one.
  const auto& full =
      *std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (std::size_t i = 1; i < full.size(); ++i) {
    cluster.route(full[0], full[i], route);
    m.node = slower(m.node, hop_over(cluster, full[0], full[i], route));
  }
  if (nodes.size() == 1) {
    m.net = m.net_all = m.node;
    return m;
  }

  // The node that is farthest from the first one.
  const auto& near = nodes[0];
  std::size_t far = 1, most_links = 0;
  const std::size_t others = nodes.size() - 1, samples = std::min(others, kSamples);
  for (std::size_t s = 0; s < samples; ++s) {
    const std::size_t n = 1 + (s * others) / samples + (s + 1 == samples ? others - 1 - (s * others) / samples : 0);
    cluster.route(near[0], nodes[n][0], route);
    if (route.size() > most_links) far = n, most_links = route.size();
  }
  cluster.route(near[0], nodes[far][0], route);
  m.net = hop_over(cluster, near[0], nodes[far][0], route);

  std::unordered_map<LinkId, unsigned> load;
  std::vector<std::vector<LinkId>> routes;
  for (std::size_t i = 0; i < near.size(); ++i) {
    cluster.route(near[i], nodes[far][i % nodes[far].size()], route);
    for (const LinkId l : route) ++load[l];
    routes.push_back(route);
  }
  m.net_all = m.net;
  for (std::size_t i = 0; i < near.size(); ++i) {
    Hop hop = hop_over(cluster, near[i], nodes[far][i % nodes[far].size()], routes[i]);
    for (const LinkId l : routes[i])
      hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, load[l] / cluster.links()[l].bandwidth_GBps);
    m.net_all = slower(m.net_all, hop);
  }
  if (full.size() == 1) m.node = m.net;
  return m;
}

}  // namespace gccl::sim
