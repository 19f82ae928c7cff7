#include "libgccl/cluster/read/summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "libgccl/cluster/composed.hpp"
#include "libgccl/cluster/cost_model.hpp"

namespace gccl {
namespace {

constexpr std::uint64_t kRoutesMax = 1u << 18;  // looked at for the diameter: a few milliseconds

void add_tiers(const Cluster& cluster, Summary& s) {
  std::array<TierSummary, 7> tiers{};
  for (const Link& l : cluster.links()) {
    TierSummary& t = tiers[std::size_t(l.tier)];
    if (t.links++ == 0) {
      t = {.tier = l.tier,
           .links = 1,
           .GBps_min = l.bandwidth_GBps,
           .GBps_max = l.bandwidth_GBps,
           .latency_ns_min = l.latency_ns,
           .latency_ns_max = l.latency_ns,
           .oversubscription = {}};
    }
    t.GBps_min = std::min(t.GBps_min, l.bandwidth_GBps);
    t.GBps_max = std::max(t.GBps_max, l.bandwidth_GBps);
    t.latency_ns_min = std::min(t.latency_ns_min, l.latency_ns);
    t.latency_ns_max = std::max(t.latency_ns_max, l.latency_ns);
    t.total_GBps += l.bandwidth_GBps;
  }
  const double ports = tiers[std::size_t(Tier::leaf)].total_GBps;
  for (TierSummary& t : tiers) {
    if (t.links == 0) continue;
    if (ports > 0 && (t.tier == Tier::spine || t.tier == Tier::core)) t.oversubscription = ports / t.total_GBps;
    s.tiers.push_back(t);
  }
}

double paired_GBps(const Cluster& cluster) {
  const Card half = cluster.cards() / 2;
  std::vector<std::uint32_t> load(cluster.links().size(), 0);
  std::vector<LinkId> route;
  for (Card c = 0; c < half; ++c)
    for (const bool back : {false, true}) {
      cluster.route(back ? c + half : c, back ? c : c + half, route);
      for (const LinkId l : route) ++load[l];
    }
  double rate = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l < load.size(); ++l)
    if (load[l]) rate = std::min(rate, cluster.links()[l].bandwidth_GBps / load[l]);
  return half ? half * rate : 0;
}

void add_diameter(const Cluster& cluster, Summary& s) {
  const std::uint64_t cards = s.cards;
  s.diameter_sources = std::clamp<std::uint64_t>(kRoutesMax / std::max<std::uint64_t>(cards, 1), 1, cards);
  std::vector<LinkId> route;
  for (std::uint64_t i = 0; i < s.diameter_sources; ++i)
    for (std::uint64_t to = 0; to < cards; ++to) {
      cluster.route(Card(i * cards / s.diameter_sources), Card(to), route);
      s.diameter = std::max<std::uint64_t>(s.diameter, route.size());
    }
}

// What half of the NICs' cables carry: what leaves one half of them enters the other.
double half_of_ports_GBps(const ComposedCluster& cluster) {
  double out = 0, in = 0;
  for (Rank n = 0; n < cluster.nodes(); ++n)
    for (const LinkKind& port : cluster.type_of(n).ports) {
      out += port.forward.bandwidth_GBps;
      in += port.reverse.bandwidth_GBps;
    }
  return std::min(out, in) / 2;
}

}  // namespace

Summary summarize(const Cluster& cluster) {
  Summary s;
  s.name = cluster.name();
  s.cards = cluster.cards();
  s.nodes = cluster.nodes();
  std::vector<std::uint64_t> per_node(s.nodes, 0);
  for (Card c = 0; c < s.cards; ++c) ++per_node[cluster.node_of(c)];
  const auto [least, most] = std::minmax_element(per_node.begin(), per_node.end());
  s.cards_per_node_min = *least;
  s.cards_per_node_max = *most;
  add_tiers(cluster, s);
  s.paired_GBps = paired_GBps(cluster);
  add_diameter(cluster, s);
  std::vector<Card> all(s.cards);
  std::iota(all.begin(), all.end(), 0);
  s.costs = cost_without_loads(cluster, all, 1);
  s.net_loaded = net_loaded(cluster, all);

  const auto* composed = dynamic_cast<const ComposedCluster*>(&cluster);
  if (!composed) return s;
  s.description = composed->parts().description;
  s.nics = composed->nics();
  if (!composed->parts().fabric) return s;
  s.fabric = composed->parts().fabric->describe();
  s.layered = composed->parts().fabric->layered();
  if (!s.layered)
    for (TierSummary& t : s.tiers) t.oversubscription.reset();
  if (s.nodes > 1)
    if (auto cut = composed->parts().fabric->bisection_GBps()) {
      if (s.nics > 0) cut = std::min(*cut, half_of_ports_GBps(*composed));
      if (std::isfinite(*cut)) s.bisection_GBps = cut;
    }
  return s;
}

}  // namespace gccl
