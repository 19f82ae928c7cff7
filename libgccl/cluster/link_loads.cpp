#include "libgccl/cluster/link_loads.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "libgccl/algorithms/parts/binary_tree.hpp"
#include "libgccl/algorithms/parts/halving.hpp"
#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/parts/swing.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cluster/circulant.hpp"
#include "libgccl/cluster/exchange.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

// Steps looked at for what every member sends to every other one, of each kind; and of how many members all are.
constexpr std::size_t kSteps = 16, kAllStepsOf = 64;

}  // namespace

Messages shifted(const Part& cluster, const Groups& groups, std::size_t d) {
  Messages shift(cluster);
  for (const auto& g : groups)
    for (std::size_t i = 0; i < g.size(); ++i) shift.add(g[i], g[(i + d) % g.size()]);
  return shift;
}

namespace {

// The mean, for the member with the slowest messages, over some of those steps of Turns that stay on a node, or over
// some of those that do not; of nodes of different sizes, over some of all.
struct MeanStep {
  Hop all;    // while every member's are on their way
  Hop alone;  // one at a time
};
enum class Steps : std::uint8_t { stay, leave, any };
MeanStep mean_step(const Part& cluster, const Groups& groups, std::span<const Rank> begin, Steps kind) {
  const std::size_t most = largest(groups);
  const NodeSpans spans = NodeSpans::of(begin, Rank(most));
  const std::size_t nodes = spans.nodes, steps = Turns(spans, 0).steps(), rounds = steps / nodes;
  const std::size_t all = kind == Steps::any ? steps - 1 : kind == Steps::stay ? rounds - 1 : rounds * (nodes - 1);
  const std::size_t samples = std::min(all, kSteps);
  if (samples == 0) return {};
  Messages messages(cluster);
  struct Sum {
    double alpha_ns = 0, messages = 0;
  };
  std::vector<Sum> sums;  // of each member
  for (std::size_t k = 0; k < samples; ++k) {
    const std::size_t i = (2 * k + 1) * all / (2 * samples);
    const std::size_t step = kind == Steps::any    ? i + 1
                             : kind == Steps::stay ? (i + 1) * nodes
                                                   : i / (nodes - 1) * nodes + i % (nodes - 1) + 1;
    std::size_t member = 0;
    for (const auto& g : groups)
      for (Rank r = 0; r < g.size(); ++r, ++member) {
        sums.resize(std::max(sums.size(), member + 1));
        const Turns turns(begin.empty() ? NodeSpans::one(Rank(g.size())) : spans, r);
        const Rank to = turns[Rank(step % turns.steps())].to;
        if (to == r && kind == Steps::any) continue;
        sums[member].alpha_ns += messages.add(g[r], g[to]);
        ++sums[member].messages;
      }
  }
  double slowest = 0;
  for (const Sum& s : sums) slowest = std::max(slowest, s.messages > 0 ? s.alpha_ns / s.messages : 0);
  // Not all members have a message in each step of any.
  const double share = kind == Steps::any ? double(all) / double(samples * (most - 1)) : 1 / double(samples);
  return {{slowest, messages.busiest_ns() * share}, {slowest, messages.mean(false).beta_ns_per_byte}};
}

// The busiest link's share of a byte of each message.
double busiest_of_pairs(const Part& cluster, const Groups& groups) {
  Messages messages(cluster);
  for (const auto& g : groups)
    for (const Card from : g)
      for (const Card to : g) messages.add(from, to);
  return messages.busiest_ns();
}

// Every member sends to each other one in the order of Turns over the nodes that begin there. What stays on a node
// passes concurrently with what does not; of many members, whichever takes longer keeps them waiting.
LinkLoads::Pairs pairs_of(const Part& cluster, const Groups& groups, std::span<const Rank> begin) {
  const std::size_t most = largest(groups), nodes = begin.empty() ? 1 : begin.size() - 1;
  const auto busiest = [&](double by_steps) {
    return most <= kAllStepsOf ? busiest_of_pairs(cluster, groups) : by_steps;
  };
  if (!NodeSpans::of(begin, Rank(most)).even()) {
    const MeanStep any = mean_step(cluster, groups, begin, Steps::any);
    const double others = double(most - 1);
    return {.mean = {any.all.alpha_ns, busiest(others * any.all.beta_ns_per_byte) / others}, .alone = any.alone};
  }
  const double near = double(most / nodes - 1), far = double(most - most / nodes);
  const MeanStep stays = mean_step(cluster, groups, begin, Steps::stay),
                 leaves = mean_step(cluster, groups, begin, Steps::leave);
  const auto mean = [&](double stay, double leave) { return (near * stay + far * leave) / (near + far); };
  const double alpha = mean(stays.all.alpha_ns, leaves.all.alpha_ns);
  const double most_ns = busiest(std::max(near * stays.all.beta_ns_per_byte, far * leaves.all.beta_ns_per_byte));
  return {.mean = {alpha, most_ns / (near + far)},
          .alone = {alpha, mean(stays.alone.beta_ns_per_byte, leaves.alone.beta_ns_per_byte)}};
}

// Those that are left when each group folds to a power of two exchange with the ones d, a power of two, away.
Hop among_survivors(const Part& cluster, const Groups& groups, std::size_t d) {
  Messages exchange(cluster);
  for (const auto& g : groups) {
    const Numbering left = Numbering::survivors({.size = Rank(g.size())});
    for (Rank i = 0; i < left.size; ++i)
      if (const Rank to = i ^ Rank(d); to < left.size) exchange.add(g[left[i]], g[left[to]]);
  }
  return exchange.slowest();
}

// Swing's steps there and back: each hop is what the two times of a step add, on average, to the longest way of empty
// messages, and of messages that take only time for their bytes, half as many with every step. Slow messages of
// different steps mostly belong to different ranks.
LinkLoads::Swing swing_ways(const Part& cluster, const Groups& groups) {
  std::vector<Hop> swing(std::size_t(std::bit_width(largest(groups)) - 1));
  struct Exchange {
    std::size_t from, to;  // among all groups' survivors
  };
  std::vector<Messages> messages;
  for (std::size_t s = 0; s < swing.size(); ++s) messages.emplace_back(cluster);
  std::vector<std::vector<Exchange>> exchanges(swing.size());
  Messages whole(cluster);
  const auto share = [](std::size_t s) { return 1 / double(Count(2) << s); };
  std::size_t base = 0;
  for (const auto& g : groups) {
    const Numbering left = Numbering::survivors({.size = Rank(g.size())});
    for (unsigned s = 0; s < swing.size() && (Count(1) << s) < left.size; ++s)
      for (Rank i = 0; i < left.size; ++i) {
        const Rank to = swing_partner(left.size, i, s);
        messages[s].add(g[left[i]], g[left[to]]);
        whole.add_last_of(messages[s], g[left[i]], g[left[to]], share(s));
        exchanges[s].push_back({base + i, base + to});
      }
    base += left.size;
  }
  const auto added = [&](auto time) {
    std::vector<double> reached(base, 0), sum(swing.size(), 0);
    double end = 0;
    const auto step = [&](std::size_t s) {
      const std::vector<double> was = reached;
      const double before = end;
      for (std::size_t i = 0; i < exchanges[s].size(); ++i) {
        double& to = reached[exchanges[s][i].to];
        to = std::max(to, was[exchanges[s][i].from] + time(s, i));
        end = std::max(end, to);
      }
      sum[s] += (end - before) / 2;
    };
    for (std::size_t s = 0; s < swing.size(); ++s) step(s);
    for (std::size_t s = swing.size(); s-- > 0;) step(s);
    return sum;
  };
  const auto alpha = added([&](std::size_t s, std::size_t i) { return messages[s].at(i, false).alpha_ns; });
  const auto beta =
      added([&](std::size_t s, std::size_t i) { return share(s) * messages[s].at(i, true).beta_ns_per_byte; });
  // But the busiest link carries all steps' messages.
  const double ways = std::accumulate(beta.begin(), beta.end(), 0.0);
  const double late = ways > 0 ? std::max(1.0, whole.busiest_ns() / ways) : 1;
  for (std::size_t s = 0; s < swing.size(); ++s) swing[s] = {alpha[s], late * beta[s] / share(s)};
  return {std::move(swing), whole.busiest_ns()};
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
LinkLoads::Trees trees_of(const Part& cluster, const Groups& groups, Rank first) {
  struct Edge {
    std::size_t child, parent;  // of all members of both trees
  };
  Messages whole(cluster), feeds(cluster);
  std::vector<Messages> levels;
  std::vector<std::vector<Edge>> edges;
  std::size_t base = 0;
  for (const auto& g : groups) {
    const Rank places = Rank(g.size()) - std::min(first, Rank(g.size()));
    for (const auto tree : {first_tree, second_tree}) {
      for (Rank x = 1; x <= places; ++x) {
        const TreePlace t = tree(x, places);
        if (first > 0 && t.parent == 0) {
          feeds.add(g[0], g[x - 1 + first]);
          whole.add(g[0], g[x - 1 + first]);
        }
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
  return {.levels = std::move(result),
          .ns_per_byte = whole.busiest_ns(),
          .feed = {.one = feeds.alone(), .shared_ns_per_byte = feeds.busiest_ns()}};
}

LinkLoads::Shifts shifts_of(const Part& cluster, const Groups& groups) {
  LinkLoads::Shifts t;
  LongestWay rounds(groups, false), turns(groups, true);
  for (std::size_t d = 1; d < largest(groups); d *= 2) {
    const Messages shift = shifted(cluster, groups, d);
    t.plain.push_back(shift_of(shift));
    t.rounds.push_back({rounds.step(shift, groups, d), shift.busiest_ns()});
    t.turns.push_back({turns.step(shift, groups, d), shift.busiest_ns()});
  }
  return t;
}

std::vector<Hop> exchanges_of(const Part& cluster, const Groups& groups) {
  std::vector<Hop> hops;
  for (std::size_t d = 1; d < largest(groups); d *= 2) {
    Messages exchange(cluster);
    for (const auto& g : groups)
      for (std::size_t i = 0; i < g.size(); ++i)
        if ((i ^ d) < g.size()) exchange.add(g[i], g[i ^ d]);
    hops.push_back(exchange.empty() ? shift_of(shifted(cluster, groups, d)) : exchange.slowest());
  }
  return hops;
}

std::vector<Hop> survivors_of(const Part& cluster, const Groups& groups) {
  std::vector<Hop> hops;
  for (std::size_t d = 1; 2 * d <= largest(groups); d *= 2) hops.push_back(among_survivors(cluster, groups, d));
  return hops;
}

// Recursive halving's, of a byte for each vector.
Messages halved(const Part& cluster, const Groups& groups, bool near_first) {
  Messages parts(cluster);
  for (const auto& g : groups) {
    const Rank n = Rank(g.size());
    const Numbering far = Numbering::from({.size = n}), by = near_first ? far.near_first() : far;
    for (unsigned k = 0; n > 1 && k < unsigned(std::bit_width(n - 1)); ++k) {
      const auto [distance, length] = halving_span(n, k);
      for (Rank i = 0; i < n; ++i) {
        const Rank to = std::has_single_bit(n) ? i ^ distance : Rank((Count(i) + distance) % n);
        parts.add(g[by[i]], g[by[to]], double(length) / double(n));
      }
    }
  }
  return parts;
}

double near_halving_of(const Part& cluster, const Groups& groups) { return halved(cluster, groups, true).busiest_ns(); }

double far_halving_of(const Part& cluster, const Groups& groups) { return halved(cluster, groups, false).busiest_ns(); }

double gathered_halving_of(const Part& cluster, const Groups& groups) {
  Messages parts = halved(cluster, groups, true);
  for (const auto& g : groups) {
    const Rank n = Rank(g.size());
    const Numbering by = Numbering::from({.size = n}).near_first();
    for (Rank d = 1; d < n; d *= 2)
      for (Rank i = 0; i + d < n; i += 2 * d)
        parts.add(g[by[i + d]], g[by[i]], double(std::min(d, n - i - d)) / double(n));
  }
  return parts.busiest_ns();
}

// A member's messages of a byte, one after the other: each begins when the links on its way are done with those before
// it, and when a window of them has arrived.
class InOrder {
 public:
  explicit InOrder(const Part& cluster) : cluster_(cluster) {}

  void add(std::span<const LinkId> route, double efficiency) {
    double begins = arrived_.size() >= kInFlight ? arrived_[arrived_.size() - kInFlight] : 0, slowest = 0;
    for (const LinkId l : route) begins = std::max(begins, busy_[l]);
    for (const LinkId l : route) {
      const double takes = 1 / (cluster_.bandwidth_GBps(l) * efficiency);
      busy_[l] = begins + takes;
      slowest = std::max(slowest, takes);
    }
    arrived_.push_back(begins + slowest);
    last_ns_ = std::max(last_ns_, arrived_.back());
  }
  // When the last one has arrived.
  double last_ns() const { return last_ns_; }

 private:
  const Part& cluster_;
  std::map<LinkId, double> busy_;  // until then
  std::vector<double> arrived_;
  double last_ns_ = 0;
};

LinkLoads::Fans fans_of(const Part& cluster, const Groups& groups) {
  LinkLoads::Fans t;
  Messages out(cluster), in(cluster);
  for (const auto& g : groups) {
    std::vector<double> arrive, arrived;  // at member 0; from it
    double leaves = 0;
    InOrder one_by_one(cluster);
    for (std::size_t i = 1; i < g.size(); ++i) {
      arrive.push_back(in.add(g[i], g[0]));
      if (arrived.size() >= kInFlight) leaves = std::max(leaves, arrived[arrived.size() - kInFlight]);
      arrived.push_back(leaves + out.add(g[0], g[i]));
      t.out_ns = std::max(t.out_ns, arrived.back());
      one_by_one.add(out.last_route(), cluster.way(g[0], g[i]).efficiency);
      leaves += double(cluster.costs(g[0]).overhead_ns);
    }
    t.out_in_order_ns_per_byte = std::max(t.out_in_order_ns_per_byte, one_by_one.last_ns());
    std::sort(arrive.begin(), arrive.end());
    double taken = 0;
    for (const double a : arrive) taken = std::max(a, taken + double(cluster.costs(g[0]).receive_overhead_ns));
    t.in_ns = std::max(t.in_ns, taken);
  }
  const double others = double(largest(groups) - 1);
  t.out_mean = out.mean(false);
  t.in_first_ns = in.first_on_busiest_ns();
  t.out = out.alone(), t.in = in.alone();
  t.out_ns_per_byte = out.busiest_ns() / others;
  t.in_ns_per_byte = in.busiest_ns() / others;
  return t;
}

// Whether a binomial scatter's messages from member 0 leave its node by a link that those of a ring leave it by, too:
// its parts are on their way from the start, those of other nodes once they have them. Of two nodes only the one has
// parts to send to the other.
bool ring_in_way(const Part& cluster, const Groups& groups) {
  Messages scatter(cluster), ring(cluster), both(cluster);
  for (const auto& g : groups) {
    const Rank first = cluster.node_of(g.front()), last = cluster.node_of(g.back());
    if (std::ranges::all_of(g, [&](Card c) { return cluster.node_of(c) == first || cluster.node_of(c) == last; }))
      continue;
    const auto add = [&](Messages& to, Card from, Card at, std::size_t parts) {
      to.add(from, at, double(parts));
      both.add_last_of(to, from, at, double(parts));
    };
    for (std::size_t d = 1; d < g.size(); d *= 2) add(scatter, g[0], g[d], std::min(d, g.size() - d));
    for (std::size_t i = 1; i + 1 < g.size() && cluster.node_of(g[i]) == first; ++i)
      add(ring, g[i], g[i + 1], g.size() - 1);
  }
  return both.busiest_ns() > 1.5 * std::max(scatter.busiest_ns(), ring.busiest_ns());
}

double neighbors_of(const Part& cluster, const Groups& groups) {
  Messages both = shifted(cluster, groups, 1);
  for (const auto& g : groups)
    for (std::size_t i = 0; i < g.size(); ++i) both.add(g[(i + 1) % g.size()], g[i]);
  return both.busiest_ns();
}

Hop odd_of(const Part& cluster, const Groups& groups) {
  Messages odd(cluster);
  for (const auto& g : groups)
    for (std::size_t i = 1; i < g.size(); i += 2) {
      odd.add(g[i], g[(i + 1) % g.size()]);
      odd.add(g[(i + 1) % g.size()], g[i]);
    }
  return odd.slowest();
}

}  // namespace

LinkLoads loads_of(std::shared_ptr<const Part> cluster, std::shared_ptr<const Groups> groups,
                   std::shared_ptr<const std::vector<Rank>> begin) {
  if (largest(*groups) < 2) return {};
  const auto by = [&]<class T>(T (*of)(const Part&, const Groups&)) {
    return OnDemand<T>([=] { return of(*cluster, *groups); });
  };
  const auto trees = [&](Rank first) {
    return OnDemand<LinkLoads::Trees>([=] { return trees_of(*cluster, *groups, first); });
  };
  const auto binomial = [&](bool up) {
    return OnDemand<LinkLoads::Binomial>([=] { return binomial_of(*cluster, *groups, up); });
  };
  return {.shifts = by(shifts_of),
          .exchange = by(exchanges_of),
          .survivors = by(survivors_of),
          .halving = by(circulant_halving),
          .doubling = by(circulant_doubling),
          .swing = by(swing_ways),
          .binomial_down = binomial(false),
          .binomial_up = binomial(true),
          .trees = trees(0),
          .fed_trees = trees(1),
          .odd = by(odd_of),
          .neighbors_ns_per_byte = by(neighbors_of),
          .next = by(next_of),
          .fans = by(fans_of),
          .gather_stretch =
              OnDemand<double>([=] { return cluster->everything() ? gather_stretch(*cluster, *groups) : 1.0; }),
          .near_halving_ns_per_byte = by(near_halving_of),
          .far_halving_ns_per_byte = by(far_halving_of),
          .gathered_halving_ns_per_byte = by(gathered_halving_of),
          .ring_in_way = by(ring_in_way),
          .pairs = OnDemand<LinkLoads::Pairs>([=] { return pairs_of(*cluster, *groups, *begin); }),
          .stretch = OnDemand<LinkLoads::Stretch>([=] {
            return cluster->everything() ? exchange_stretch(*cluster, *groups, *begin) : LinkLoads::Stretch{};
          })};
}

Hop doubling_way(const Part& cluster, const std::vector<Card>& cards) {
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

}  // namespace gccl
