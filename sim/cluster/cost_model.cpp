#include "sim/cluster/cost_model.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "libgccl/algorithms/turns.hpp"

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

// Messages that are all on their way at once.
class Messages {
 public:
  explicit Messages(const Cluster& cluster) : cluster_(cluster), load_(cluster.links().size(), 0) {}

  void add(Card from, Card to) {
    if (from == to) return;
    cluster_.route(from, to, route_);
    hops_.push_back(hop_over(cluster_, from, to, route_));
    for (const LinkId l : route_) {
      if (load_[l]++ == 0) used_.push_back(l);
      links_.push_back(l);
    }
    ends_.push_back(links_.size());
  }
  bool empty() const { return hops_.empty(); }

  // The most a link has to carry when each message has one byte.
  double busiest_ns() const {
    double most = 0;
    for (const LinkId l : used_) most = std::max(most, time(l));
    return most;
  }
  Hop slowest() const {
    Hop worst{};
    for (const Hop& h : hops_) worst.alpha_ns = std::max(worst.alpha_ns, h.alpha_ns);
    worst.beta_ns_per_byte = busiest_ns();
    return worst;
  }
  // Shared: with what the other messages take of its links.
  Hop mean(bool shared) const {
    Hop sum{};
    for (std::size_t i = 0, begin = 0; i < hops_.size(); begin = ends_[i++]) {
      double beta = hops_[i].beta_ns_per_byte;
      if (shared)
        for (std::size_t l = begin; l < ends_[i]; ++l) beta = std::max(beta, time(links_[l]));
      sum.alpha_ns += hops_[i].alpha_ns;
      sum.beta_ns_per_byte += beta;
    }
    const double n = double(std::max<std::size_t>(hops_.size(), 1));
    return {sum.alpha_ns / n, sum.beta_ns_per_byte / n};
  }

 private:
  double time(LinkId l) const { return load_[l] / cluster_.links()[l].bandwidth_GBps; }

  const Cluster& cluster_;
  std::vector<std::uint32_t> load_;
  std::vector<LinkId> used_, route_, links_;
  std::vector<std::size_t> ends_;
  std::vector<Hop> hops_;
};

// Groups of members by card; each at once.
using Groups = std::vector<std::vector<Card>>;

// Steps looked at for what every member sends to every other one.
constexpr std::size_t kSteps = 16;

// Member i of each group sends to member i + d. After a far message comes a near one: one after the other, shifts take
// the mean latency, while the narrowest link keeps all waiting.
Hop shift_of(const Messages& shift) { return {shift.mean(false).alpha_ns, shift.busiest_ns()}; }
Messages shifted(const Cluster& cluster, const Groups& groups, std::size_t d) {
  Messages shift(cluster);
  for (const auto& g : groups)
    for (std::size_t i = 0; i < g.size(); ++i) shift.add(g[i], g[(i + d) % g.size()]);
  return shift;
}

// The mean over some of those steps of Turns that stay on a node, or over some of those that do not.
Hop mean_step(const Cluster& cluster, const Groups& groups, Rank nodes, bool stay) {
  std::size_t most = 0;
  for (const auto& g : groups) most = std::max(most, g.size());
  const std::size_t per_node = most / nodes, all = stay ? per_node - 1 : most - per_node;
  const std::size_t samples = std::min(all, kSteps);
  if (samples == 0) return {};
  Messages messages(cluster);
  for (std::size_t k = 0; k < samples; ++k) {
    const std::size_t i = (2 * k + 1) * all / (2 * samples);
    const Rank step = Rank(stay ? (i + 1) * nodes : i / (nodes - 1) * nodes + i % (nodes - 1) + 1);
    for (const auto& g : groups)
      for (Rank r = 0; r < g.size(); ++r)
        messages.add(g[r], g[Turns(nodes, Rank(g.size()), r)[Rank(step % g.size())].to]);
  }
  return {messages.mean(false).alpha_ns, messages.busiest_ns() / double(samples)};
}

// Every member sends to each other one in the order of Turns over that many nodes. What stays on a node passes beside
// what does not, and whichever takes longer keeps the members waiting.
Hop pairs_of(const Cluster& cluster, const Groups& groups, Rank nodes) {
  std::size_t most = 0;
  for (const auto& g : groups) most = std::max(most, g.size());
  const double near = double(most / nodes - 1), far = double(most - most / nodes);
  const Hop stays = mean_step(cluster, groups, nodes, true), leaves = mean_step(cluster, groups, nodes, false);
  return {(near * stays.alpha_ns + far * leaves.alpha_ns) / (near + far),
          std::max(near * stays.beta_ns_per_byte, far * leaves.beta_ns_per_byte) / (near + far)};
}

// Nodes: whose members follow each other in equal numbers, else 1.
LinkLoads loads_of(const Cluster& cluster, const Groups& groups, Rank nodes) {
  std::size_t most = 0;
  for (const auto& g : groups) most = std::max(most, g.size());
  LinkLoads t;
  if (most < 2) return t;
  for (std::size_t d = 1; d < most; d *= 2) {
    const Messages shift = shifted(cluster, groups, d);
    Messages exchange(cluster);
    for (const auto& g : groups)
      for (std::size_t i = 0; i < g.size(); ++i)
        if ((i ^ d) < g.size()) exchange.add(g[i], g[i ^ d]);
    t.shift.push_back(shift_of(shift));
    t.exchange.push_back(exchange.empty() ? t.shift.back() : exchange.slowest());
    if (d == 1) t.next = shift.mean(true), t.next_alone = shift.mean(false);
  }
  Messages odd(cluster);
  for (const auto& g : groups)
    for (std::size_t i = 1; i < g.size(); i += 2) {
      odd.add(g[i], g[(i + 1) % g.size()]);
      odd.add(g[(i + 1) % g.size()], g[i]);
    }
  t.odd = odd.slowest();
  t.pairs = pairs_of(cluster, groups, nodes);
  return t;
}

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

void add_loads(const Cluster& cluster, const std::vector<Card>& cards, const Groups& nodes, CostModel& m) {
  if (cards.size() < 2 || cards.size() > kTrafficCardsMax) return;
  bool regular = true;  // ranks follow each other node by node, as many on each
  for (std::size_t k = 0, r = 0; k < nodes.size(); ++k) {
    regular = regular && nodes[k].size() == nodes[0].size();
    for (const Card c : nodes[k]) regular = regular && cards[r++] == c;
  }
  m.all = loads_of(cluster, {cards}, regular ? Rank(nodes.size()) : 1);
  m.inside = loads_of(cluster, nodes, 1);
  m.rail = loads_of(cluster, rails_of(nodes), 1);
  Messages out(cluster), in(cluster);
  for (std::size_t i = 1; i < cards.size(); ++i) out.add(cards[0], cards[i]), in.add(cards[i], cards[0]);
  m.fan_out_ns_per_byte = out.busiest_ns() / double(cards.size() - 1);
  m.fan_in_ns_per_byte = in.busiest_ns() / double(cards.size() - 1);
}

double inverse(double GBps) { return GBps > 0 ? 1 / GBps : 0; }

}  // namespace

CostModel cost_without_loads(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes) {
  CostModel m;
  m.element_bytes = element_bytes;
  if (cards.empty()) return m;

  for (const Card c : cards) {
    const CardCosts& costs = cluster.costs(c);
    m.overhead_ns = std::max(m.overhead_ns, double(costs.overhead_ns));
    m.receive_overhead_ns = std::max(m.receive_overhead_ns, double(costs.receive_overhead_ns));
    m.combine_ns_per_byte = std::max(m.combine_ns_per_byte, inverse(costs.combine_GBps));
    m.copy_ns_per_byte = std::max(m.copy_ns_per_byte, inverse(costs.copy_GBps));
  }
  const Groups nodes = by_node(cluster, cards);
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

CostModel cost_model(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes) {
  CostModel m = cost_without_loads(cluster, cards, element_bytes);
  add_loads(cluster, cards, by_node(cluster, cards), m);
  return m;
}

std::optional<Hop> net_loaded(const Cluster& cluster, const std::vector<Card>& cards) {
  const Groups nodes = by_node(cluster, cards);
  if (nodes.size() < 2 || cards.size() > kTrafficCardsMax) return std::nullopt;
  return shift_of(shifted(cluster, rails_of(nodes), std::bit_floor(nodes.size() - 1)));
}

}  // namespace gccl::sim
