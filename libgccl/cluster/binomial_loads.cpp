// What a binomial tree's messages take of links.
#include <algorithm>

#include "libgccl/cluster/link_loads.hpp"

namespace gccl {
namespace {

// The narrowest link that member 0's messages to (or from) members d and 2d of a group share, inverse; 0 where there is
// none.
double shared_ns_per_byte(const Part& cluster, const Groups& groups, std::size_t d, bool up) {
  double most = 0;
  std::vector<LinkId> near, far;
  for (const auto& g : groups) {
    if (2 * d >= g.size()) continue;
    const auto route = [&](std::size_t i, std::vector<LinkId>& links) {
      cluster.route(g[up ? i : 0], g[up ? 0 : i], links);
    };
    route(d, near);
    route(2 * d, far);
    const double efficiency = cluster.way(g[up ? d : 0], g[up ? 0 : d]).efficiency;
    for (const LinkId l : near)
      if (std::find(far.begin(), far.end(), l) != far.end())
        most = std::max(most, 1 / (cluster.bandwidth_GBps(l) * efficiency));
  }
  return most;
}

}  // namespace

// Goes through the levels in the order of time, as each message waits for those before it.
LinkLoads::Binomial binomial_of(const Part& cluster, const Groups& groups, bool up) {
  LinkLoads::Binomial t;
  Messages whole(cluster), both(cluster), blocks(cluster);
  struct Member {
    double at = 0;                   // when it has what it passes on, all messages empty
    double level = 0;                // the same if each took as long as the slowest of its level
    double vectors = 0, blocks = 0;  // the same where only bytes take time, until its latest message is through
    std::size_t messages = 0;        // with others of its subtree, so far
  };
  std::vector<std::vector<Member>> members;
  for (const auto& g : groups) members.emplace_back(g.size());
  std::vector<std::size_t> distances;
  for (std::size_t d = 1; d < largest(groups); d *= 2) distances.push_back(d);
  if (!up) std::ranges::reverse(distances);
  const auto pass_empty = [&](std::size_t k, std::size_t i, std::size_t d, double alpha, double Member::*at,
                              double& last) {
    Member &top = members[k][i], &below = members[k][i + d];
    const CardCosts costs = cluster.costs(groups[k][i]);
    if (!up) {
      below.*at = top.*at + double(top.messages) * double(costs.overhead_ns) + alpha;
      last = std::max(last, below.*at);
    } else {
      const double alone = below.*at + alpha, taking = double(costs.receive_overhead_ns);
      top.*at = top.messages == 0 ? alone : std::max({top.*at, alone, std::min(top.*at, alone) + taking});
      last = std::max(last, top.*at);
    }
  };
  double by_level_ns = 0;
  for (const std::size_t d : distances) {
    Messages tree(cluster);
    const auto add = [&](std::size_t k, std::size_t i) {
      const auto& g = groups[k];
      const Card from = g[up ? i + d : i], to = g[up ? i : i + d];
      const double alpha = tree.add(from, to);
      whole.add_last_of(tree, from, to, 1);
      both.add_last_of(tree, from, to, 1);
      both.add(to, from);
      blocks.add_last_of(tree, from, to, double(std::min(d, g.size() - i - d)));
      pass_empty(k, i, d, alpha, &Member::at, t.empty_ns);
    };
    const auto pass_bytes = [&](std::size_t k, std::size_t i, double ns_per_byte) {
      Member &top = members[k][i], &below = members[k][i + d];
      const double size = double(std::min(d, groups[k].size() - i - d));
      top.vectors = (up ? std::max(top.vectors, below.vectors) : top.vectors) + ns_per_byte;
      top.blocks = (up ? std::max(top.blocks, below.blocks) : top.blocks) + size * ns_per_byte;
      if (!up) below.vectors = top.vectors, below.blocks = top.blocks;
      t.in_turn_ns_per_byte = std::max(t.in_turn_ns_per_byte, top.vectors);
      t.blocks_in_turn_ns_per_byte = std::max(t.blocks_in_turn_ns_per_byte, top.blocks);
    };
    for (std::size_t k = 0; k < groups.size(); ++k)
      for (std::size_t i = 0; i + d < groups[k].size(); i += 2 * d) add(k, i);
    t.hops.push_back(tree.slowest());
    std::size_t message = 0;
    for (std::size_t k = 0; k < groups.size(); ++k)
      for (std::size_t i = 0; i + d < groups[k].size(); i += 2 * d) {
        if (groups[k][i] != groups[k][i + d]) pass_bytes(k, i, tree.at(message++, true).beta_ns_per_byte);
        pass_empty(k, i, d, t.hops.back().alpha_ns, &Member::level, by_level_ns);
        ++members[k][i].messages;
      }
    t.behind_ns_per_byte.push_back(shared_ns_per_byte(cluster, groups, d, up));
  }
  if (!up) {
    std::ranges::reverse(t.hops);
    std::ranges::reverse(t.behind_ns_per_byte);
  }
  t.excess_ns = by_level_ns - t.empty_ns;
  t.ns_per_byte = whole.busiest_ns();
  t.both_ns_per_byte = both.busiest_ns();
  t.blocks_ns_per_byte = blocks.busiest_ns();
  return t;
}

}  // namespace gccl
