#include "libgccl/cluster/cost_model.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "libgccl/algorithms/parts/binary_tree.hpp"
#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/parts/swing.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cost/pipelined.hpp"
#include "libgccl/schedule/channel.hpp"

namespace gccl {
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

  // The message's alpha.
  double add(Card from, Card to) {
    if (from == to) return 0;
    cluster_.route(from, to, route_);
    hops_.push_back(hop_over(cluster_, from, to, route_));
    for (const LinkId l : route_) {
      if (load_[l]++ == 0) used_.push_back(l);
      links_.push_back(l);
    }
    ends_.push_back(links_.size());
    return hops_.back().alpha_ns;
  }
  bool empty() const { return hops_.empty(); }

  // The most a link has to carry when each message has one byte.
  double busiest_ns() const {
    double most = 0;
    for (const LinkId l : used_) most = std::max(most, time(l));
    return most;
  }
  Hop slowest() const { return {alone().alpha_ns, busiest_ns()}; }
  // The i-th message, alone or `shared` with what the others take of its links.
  Hop at(std::size_t i, bool shared) const {
    Hop hop = hops_[i];
    for (std::size_t l = i ? ends_[i - 1] : 0; shared && l < ends_[i]; ++l)
      hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, time(links_[l]));
    return hop;
  }
  // As if each were alone.
  Hop alone() const {
    Hop worst{};
    for (const Hop& h : hops_) {
      worst.alpha_ns = std::max(worst.alpha_ns, h.alpha_ns);
      worst.beta_ns_per_byte = std::max(worst.beta_ns_per_byte, h.beta_ns_per_byte);
    }
    return worst;
  }
  // Shared: with what the other messages take of its links.
  Hop mean(bool shared) const {
    Hop sum{};
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      const Hop hop = at(i, shared);
      sum.alpha_ns += hop.alpha_ns;
      sum.beta_ns_per_byte += hop.beta_ns_per_byte;
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

std::size_t largest(const Groups& groups) {
  std::size_t most = 0;
  for (const auto& g : groups) most = std::max(most, g.size());
  return most;
}

constexpr std::size_t kWindow = std::size_t(kStepsInFlight);

// Steps looked at for what every member sends to every other one.
constexpr std::size_t kSteps = 16;

// Member i of each group sends to member i + d. After a far message comes a near one: one after the other, shifts take
// the mean latency, while the narrowest link keeps all waiting.
Hop shift_of(const Messages& shift) { return {shift.mean(false).alpha_ns, shift.busiest_ns()}; }
RingLoads ring_of(const Messages& m, Rank channels = 1) {
  return {.channels = channels, .next = m.mean(true), .next_alone = m.mean(false), .busiest = shift_of(m)};
}
Messages shifted(const Cluster& cluster, const Groups& groups, std::size_t d) {
  Messages shift(cluster);
  for (const auto& g : groups)
    for (std::size_t i = 0; i < g.size(); ++i) shift.add(g[i], g[(i + d) % g.size()]);
  return shift;
}

// The mean, for the member with the slowest messages, over some of those steps of Turns that stay on a node, or over
// some of those that do not.
struct MeanStep {
  Hop all;    // while every member's are on their way
  Hop alone;  // one at a time
};
MeanStep mean_step(const Cluster& cluster, const Groups& groups, Rank nodes, bool stay) {
  const std::size_t most = largest(groups);
  const std::size_t per_node = most / nodes, all = stay ? per_node - 1 : most - per_node;
  const std::size_t samples = std::min(all, kSteps);
  if (samples == 0) return {};
  Messages messages(cluster);
  std::vector<double> alpha;  // of each member's messages in all
  for (std::size_t k = 0; k < samples; ++k) {
    const std::size_t i = (2 * k + 1) * all / (2 * samples);
    const Rank step = Rank(stay ? (i + 1) * nodes : i / (nodes - 1) * nodes + i % (nodes - 1) + 1);
    std::size_t member = 0;
    for (const auto& g : groups)
      for (Rank r = 0; r < g.size(); ++r, ++member) {
        alpha.resize(std::max(alpha.size(), member + 1));
        alpha[member] += messages.add(g[r], g[Turns(nodes, Rank(g.size()), r)[Rank(step % g.size())].to]);
      }
  }
  const double slowest = *std::max_element(alpha.begin(), alpha.end()) / double(samples);
  return {{slowest, messages.busiest_ns() / double(samples)}, {slowest, messages.mean(false).beta_ns_per_byte}};
}

// Every member sends to each other one in the order of Turns over that many nodes. What stays on a node passes
// concurrently with what does not, and whichever takes longer keeps the members waiting.
void add_pairs(const Cluster& cluster, const Groups& groups, Rank nodes, LinkLoads& t) {
  const std::size_t most = largest(groups);
  const double near = double(most / nodes - 1), far = double(most - most / nodes);
  const MeanStep stays = mean_step(cluster, groups, nodes, true), leaves = mean_step(cluster, groups, nodes, false);
  const auto mean = [&](double stay, double leave) { return (near * stay + far * leave) / (near + far); };
  const double alpha = mean(stays.all.alpha_ns, leaves.all.alpha_ns);
  t.pairs = {alpha, std::max(near * stays.all.beta_ns_per_byte, far * leaves.all.beta_ns_per_byte) / (near + far)};
  t.pairs_alone = {alpha, mean(stays.alone.beta_ns_per_byte, leaves.alone.beta_ns_per_byte)};
}

// Those that are left when each group folds to a power of two exchange with the ones at `partner` of their numbers.
template <class Partner>
Hop among_survivors(const Cluster& cluster, const Groups& groups, Partner partner) {
  Messages exchange(cluster);
  for (const auto& g : groups) {
    const Numbering left = Numbering::survivors({.size = Rank(g.size())});
    for (Rank i = 0; i < left.size; ++i)
      if (const Rank to = partner(left.size, i); to < left.size) exchange.add(g[left[i]], g[left[to]]);
  }
  return exchange.slowest();
}

// The narrowest link that member 0's messages to members d and 2d of a group share, inverse; 0 where there is none.
double shared_ns_per_byte(const Cluster& cluster, const Groups& groups, std::size_t d) {
  double most = 0;
  std::vector<LinkId> near, far;
  for (const auto& g : groups) {
    if (2 * d >= g.size()) continue;
    cluster.route(g[0], g[d], near);
    cluster.route(g[0], g[2 * d], far);
    for (const LinkId l : near)
      if (std::find(far.begin(), far.end(), l) != far.end())
        most = std::max(most, 1 / cluster.links()[l].bandwidth_GBps);
  }
  return most;
}

// The longest way of empty messages through shifts by 1, 2, 4, ..., each of which waits for what came in the one
// before, and for its own message if `turns`.
class LongestWay {
 public:
  LongestWay(const Groups& groups, bool turns) : turns_(turns) {
    for (const auto& g : groups) reached_.emplace_back(g.size(), 0.0);
  }
  // What the next step, by d, adds to it; `shift` are its messages.
  double step(const Messages& shift, const Groups& groups, std::size_t d) {
    const double before = end_;
    std::size_t message = 0;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const auto& g = groups[k];
      std::vector<double> next = reached_[k];
      for (std::size_t i = 0; i < g.size(); ++i) {
        const std::size_t to = (i + d) % g.size();
        if (g[to] == g[i]) continue;
        const double arrives = reached_[k][i] + shift.at(message++, false).alpha_ns;
        next[to] = std::max(next[to], arrives);
        if (turns_) next[i] = std::max(next[i], arrives);
        end_ = std::max(end_, arrives);
      }
      reached_[k] = std::move(next);
    }
    return end_ - before;
  }

 private:
  std::vector<std::vector<double>> reached_;  // by group and member
  double end_ = 0;
  bool turns_;
};

// The in-order trees' messages by level, counted from the leaves. A left child is as far away as its level says. Each
// level is what it adds to the longest way from a leaf: in latencies, and in time for a byte.
std::vector<TreeLevel> tree_levels(const Cluster& cluster, const Groups& groups, Rank first, double& busiest_ns) {
  struct Edge {
    std::size_t child, parent;  // of all members of both trees
  };
  Messages whole(cluster);
  std::vector<Messages> levels;
  std::vector<std::vector<Edge>> edges;
  std::size_t base = 0;
  for (const auto& g : groups) {
    const Rank places = Rank(g.size()) - std::min(first, Rank(g.size()));
    for (const auto tree : {first_tree, second_tree}) {
      for (Rank x = 1; x <= places; ++x) {
        const TreePlace t = tree(x, places);
        if (t.leaf()) continue;
        const auto level = std::size_t(std::bit_width(x > t.left ? x - t.left : t.left - x) - 1);
        while (levels.size() <= level) levels.emplace_back(cluster), edges.emplace_back();
        for (const Rank child : {t.left, t.right}) {
          if (!child) continue;
          levels[level].add(g[child - 1 + first], g[x - 1 + first]);
          whole.add(g[x - 1 + first], g[child - 1 + first]);
          if (first == 0) whole.add(g[child - 1], g[x - 1]);
          edges[level].push_back({base + child, base + x});
        }
      }
      base += places + 1;
    }
  }
  busiest_ns = whole.busiest_ns();
  struct Way {
    double alpha = 0, alone = 0, shared = 0;
  };
  std::vector<Way> ways(base);
  std::vector<TreeLevel> result;
  Way before;
  for (std::size_t k = 0; k < levels.size(); ++k) {
    Way most = before;
    for (std::size_t i = 0; i < edges[k].size(); ++i) {
      const Way& child = ways[edges[k][i].child];
      const Hop alone = levels[k].at(i, false);
      Way& way = ways[edges[k][i].parent];
      way.alpha = std::max(way.alpha, child.alpha + alone.alpha_ns);
      way.alone = std::max(way.alone, child.alone + alone.beta_ns_per_byte);
      way.shared = std::max(way.shared, child.shared + levels[k].at(i, true).beta_ns_per_byte);
      most = {std::max(most.alpha, way.alpha), std::max(most.alone, way.alone), std::max(most.shared, way.shared)};
    }
    result.push_back({{most.alpha - before.alpha, most.alone - before.alone}, most.shared - before.shared});
    before = most;
  }
  return result;
}

// Nodes: whose members follow each other in equal numbers, else 1.
LinkLoads loads_of(const Cluster& cluster, const Groups& groups, Rank nodes) {
  const std::size_t most = largest(groups);
  LinkLoads t;
  if (most < 2) return t;
  LongestWay rounds(groups, false), turns(groups, true);
  for (std::size_t d = 1; d < most; d *= 2) {
    const Messages shift = shifted(cluster, groups, d);
    Messages exchange(cluster);
    for (const auto& g : groups)
      for (std::size_t i = 0; i < g.size(); ++i)
        if ((i ^ d) < g.size()) exchange.add(g[i], g[i ^ d]);
    t.shift.push_back(shift_of(shift));
    t.rounds.push_back({rounds.step(shift, groups, d), shift.busiest_ns()});
    t.turns.push_back({turns.step(shift, groups, d), shift.busiest_ns()});
    t.exchange.push_back(exchange.empty() ? t.shift.back() : exchange.slowest());
    Messages tree(cluster);
    for (const auto& g : groups)
      for (std::size_t i = 0; i + d < g.size(); i += 2 * d) tree.add(g[i], g[i + d]);
    t.binomial.push_back(tree.slowest());
    if (2 * d <= most) {
      t.survivors.push_back(among_survivors(cluster, groups, [&](Rank, Rank i) { return Rank(i ^ d); }));
      t.swing.push_back(among_survivors(
          cluster, groups, [&](Rank n, Rank i) { return swing_partner(n, i, unsigned(std::countr_zero(d))); }));
    }
    t.behind_ns_per_byte.push_back(shared_ns_per_byte(cluster, groups, d));
    if (d == 1) t.next_slowest = shift.slowest(), t.next = ring_of(shift);
  }
  Messages out(cluster), in(cluster);
  for (const auto& g : groups) {
    std::vector<double> arrive, arrived;  // at member 0; from it
    double leaves = 0;
    for (std::size_t i = 1; i < g.size(); ++i) {
      arrive.push_back(in.add(g[i], g[0]));
      if (arrived.size() >= kWindow) leaves = std::max(leaves, arrived[arrived.size() - kWindow]);
      arrived.push_back(leaves + out.add(g[0], g[i]));
      t.fan_out_ns = std::max(t.fan_out_ns, arrived.back());
      leaves += double(cluster.costs(g[0]).overhead_ns);
    }
    std::sort(arrive.begin(), arrive.end());
    double taken = 0;
    for (const double a : arrive) taken = std::max(a, taken + double(cluster.costs(g[0]).receive_overhead_ns));
    t.fan_in_ns = std::max(t.fan_in_ns, taken);
  }
  t.fan_out_mean = out.mean(false);
  t.fan_out = out.alone(), t.fan_in = in.alone();
  t.fan_out_ns_per_byte = out.busiest_ns() / double(most - 1);
  t.fan_in_ns_per_byte = in.busiest_ns() / double(most - 1);
  t.trees = tree_levels(cluster, groups, 0, t.trees_ns_per_byte);
  t.fed_trees = tree_levels(cluster, groups, 1, t.fed_trees_ns_per_byte);
  Messages odd(cluster);
  for (const auto& g : groups)
    for (std::size_t i = 1; i < g.size(); i += 2) {
      odd.add(g[i], g[(i + 1) % g.size()]);
      odd.add(g[(i + 1) % g.size()], g[i]);
    }
  t.odd = odd.slowest();
  add_pairs(cluster, groups, nodes, t);
  return t;
}

// Recursive doubling's all-gather: each position of the power of two waits for what it has and for its partner's.
Hop doubling_way(const Cluster& cluster, const std::vector<Card>& cards) {
  const Rank n = Rank(cards.size()), power = std::bit_floor(n), pairs = n - power;
  const auto begin = [pairs](Rank i) { return doubling_begin(pairs, i); };
  std::vector<Hop> way(power);
  const auto later = [](Hop& a, const Hop& from, const Hop& hop, double blocks) {
    a.alpha_ns = std::max(a.alpha_ns, from.alpha_ns + hop.alpha_ns);
    a.beta_ns_per_byte = std::max(a.beta_ns_per_byte, from.beta_ns_per_byte + blocks * hop.beta_ns_per_byte);
  };
  Messages fold(cluster), back(cluster);
  for (Rank i = 0; i < pairs; ++i) {
    fold.add(cards[2 * i + 1], cards[2 * i]);
    back.add(cards[2 * i], cards[2 * i + 1]);
  }
  for (Rank i = 0; i < pairs; ++i) later(way[i], {}, fold.at(i, true), 1);
  for (Rank d = 1; d < power; d *= 2) {
    Messages exchange(cluster);
    for (Rank i = 0; i < power; ++i) exchange.add(cards[begin(i)], cards[begin(i ^ d)]);
    const std::vector<Hop> before = way;
    for (Rank i = 0; i < power; ++i) {
      const Rank first = i & ~(d - 1);
      const double blocks = begin(first + d) - begin(first);
      const Hop hop = exchange.at(i, true);
      later(way[i ^ d], before[i], hop, blocks);
      later(way[i], before[i], {0, hop.beta_ns_per_byte}, blocks);  // its port is free for the next message
    }
  }
  Hop end;
  for (const Hop& w : way) later(end, w, {}, 0);
  for (Rank i = 0; i < pairs; ++i) later(end, way[i], back.at(i, true), n - 1);
  return end;
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

// Channels whose rings are looked at: a scenario's most.
constexpr Rank kChannelsLookedAt = 64;

// How many channels have different orders (channel.hpp).
Rank orders(const View& v) {
  if (v.nodes > 1) return v.rails;
  return v.wiring == View::Wiring::mesh && v.all.size > 2 ? (v.all.size % 2 ? 1 : 2) * (v.all.size - 1) : 1;
}

void add_rings(const Cluster& cluster, const std::vector<Card>& cards, CostModel& m) {
  std::vector<Rank> node_of;
  for (const Card c : cards) node_of.push_back(cluster.node_of(c));
  const Layout layout = Layout::of(node_of).wiring(cluster.wiring());
  View v = layout.view(0);
  Messages messages(cluster);
  for (const Rank most = std::min(orders(v), kChannelsLookedAt); v.channel < most;) {
    const ChannelOrder order(v);
    for (Rank i = 0; i < order.size; ++i) messages.add(cards[order[i]], cards[order[i + 1]]);
    if (++v.channel != most && !std::has_single_bit(v.channel)) continue;
    m.rings.push_back(ring_of(messages, v.channel));
    m.rings.back().next = m.rings[0].next;  // channels drift apart, and then share links without meeting on them
  }
}

void add_loads(const Cluster& cluster, const std::vector<Card>& cards, const Groups& nodes, CostModel& m) {
  if (cards.size() < 2 || cards.size() > kTrafficCardsMax) return;
  bool regular = true;  // ranks follow each other node by node, as many on each
  for (std::size_t k = 0, r = 0; k < nodes.size(); ++k) {
    regular = regular && nodes[k].size() == nodes[0].size();
    for (const Card c : nodes[k]) regular = regular && cards[r++] == c;
  }
  m.all = loads_of(cluster, {cards}, regular ? Rank(nodes.size()) : 1);
  add_rings(cluster, cards, m);
  m.doubling = doubling_way(cluster, cards);
  m.inside = loads_of(cluster, nodes, 1);
  const Groups rails = rails_of(nodes);
  m.rail = loads_of(cluster, rails, 1);
  if (nodes.size() == 1 || nodes.size() == cards.size()) return;
  Messages rings(cluster);
  for (const auto& g : nodes)
    for (std::size_t i = 0; i < g.size() * (g.size() - 1); ++i) rings.add(g[i % g.size()], g[(i + 1) % g.size()]);
  for (const auto& g : rails)
    for (std::size_t i = 0; i < g.size(); ++i) rings.add(g[i], g[(i + 1) % g.size()]);
  m.rings_ns_per_byte = rings.busiest_ns();
}

// The same cluster where only some things take time.
class Part final : public Cluster {
 public:
  struct Kept {
    bool handling = false, memory = false, inside = false, network = false;
  };
  Part(const Cluster& whole, Kept kept) : whole_(whole), links_(whole.links()), costs_(whole.cards()) {
    for (Card card = 0; card < whole.cards(); ++card) {
      const CardCosts& c = whole.costs(card);
      // A rank sends and receives at the same time.
      if (kept.handling) costs_[card].overhead_ns = std::max(c.overhead_ns, c.receive_overhead_ns);
      if (kept.memory) costs_[card].combine_GBps = c.combine_GBps, costs_[card].copy_GBps = c.copy_GBps;
    }
    for (Link& l : links_) {
      l.latency_ns = 0;
      const bool inside = l.tier == Tier::card || l.tier == Tier::node;
      if (!(inside ? kept.inside : kept.network)) l.bandwidth_GBps = std::numeric_limits<double>::infinity();
    }
  }
  std::string_view name() const override { return whole_.name(); }
  Card cards() const override { return whole_.cards(); }
  Rank nodes() const override { return whole_.nodes(); }
  Rank node_of(Card c) const override { return whole_.node_of(c); }
  const std::vector<Link>& links() const override { return links_; }
  std::string link_name(LinkId l) const override { return whole_.link_name(l); }
  void route(Card from, Card to, std::vector<LinkId>& out) const override { whole_.route(from, to, out); }
  const CardCosts& costs(Card card) const override { return costs_[card]; }
  Count eager_bytes() const override { return whole_.eager_bytes(); }
  Rank grid_columns() const override { return whole_.grid_columns(); }
  View::Wiring wiring() const override { return whole_.wiring(); }

 private:
  const Cluster& whole_;
  std::vector<Link> links_;
  std::vector<CardCosts> costs_;  // by card
};

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
  const Groups nodes = by_node(cluster, cards);
  add_loads(cluster, cards, nodes, m);
  if (m.rings.empty()) return m;
  m.parts.push_back(cost_without_loads(Part(cluster, {.handling = true}), cards, element_bytes));
  m.parts.push_back(cost_without_loads(Part(cluster, {.memory = true}), cards, element_bytes));
  std::vector<Part::Kept> links{{.inside = true}, {.network = true}};
  if (nodes.size() == 1) links = {{.inside = true, .network = true}};
  for (const Part::Kept kept : links) {
    const Part part(cluster, kept);
    m.parts.push_back(cost_without_loads(part, cards, element_bytes));
    add_loads(part, cards, nodes, m.parts.back());
  }
  return m;
}

std::optional<Hop> net_loaded(const Cluster& cluster, const std::vector<Card>& cards) {
  const Groups nodes = by_node(cluster, cards);
  if (nodes.size() < 2 || cards.size() > kTrafficCardsMax) return std::nullopt;
  return shift_of(shifted(cluster, rails_of(nodes), std::bit_floor(nodes.size() - 1)));
}

}  // namespace gccl
