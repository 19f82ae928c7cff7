// NVLS tree: the switch of each node sums a part of the vector for each rail, a tree over the nodes adds the sums of a
// rail's parts and brings them back, and each rail's rank multicasts its part in its node. In chunks, and every second
// channel by the second tree of a double binary tree, whose inner places are the first one's leaves.
//
// On nodes of different sizes the ranks beyond the smallest node's number have no rail: they hold a vector, and get
// one.
#include <cmath>

#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/in_switch.hpp"
#include "libgccl/algorithms/parts/pairwise.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

// The same on all ranks of a node.
TreePlace rail_place(const View& v, Rank node) {
  return v.channel % 2 ? second_tree(node + 1, v.nodes) : first_tree(node + 1, v.nodes);
}

Region rail_part(const View& v, Region out) {
  return v.node.rank < v.rails ? out.part(v.node.rank, v.rails) : Region{};
}

Schedule switch_and_tree_up(Call c, View v, Share mine) {
  const Region in = input_of(c, v, mine);
  const Region part = rail_part(v, output_of(c, v, mine));
  if (v.node.size > 1) co_yield to_group(v, recv_reduce_all(Scope::node, v.rails, in, part));
  if (v.node.rank >= v.rails) co_return;
  if (v.nodes > 1)
    co_yield tree_up(v.rail, rail_place(v, v.rail.rank), v.node.size > 1 ? part : in, part);
  else if (v.node.size == 1)
    co_yield copy(in, part);
}

Schedule tree_down_and_switch(Call c, View v, Share mine) {
  const Region out = output_of(c, v, mine);
  const Region part = rail_part(v, out);
  if (v.nodes > 1 && v.node.rank < v.rails) co_yield tree_down(v.rail, rail_place(v, v.rail.rank), part);
  if (v.node.size > 1) co_yield to_group(v, send_all(Scope::node, v.rails, part, out));
}

Schedule nvls_tree_all_reduce(Call c, View v, Share mine) {
  co_yield switch_and_tree_up(c, v, mine);
  co_yield tree_down_and_switch(c, v, mine);
}

// As many chunks as there are messages between this node and the root.
Count nvls_tree_trail(const View& v) {
  Count away = 1;
  for (TreePlace place = rail_place(v, v.rail.rank); place.parent; ++away) place = rail_place(v, place.parent - 1);
  return away;
}

// All rails at once, which may share NICs. While every rank of a node of eight sends to one of six, some of those take
// twice as much as a rail carries.
Hop between_nodes(const View& v, const CostModel& m) {
  Hop hop = m.rail.known() ? m.rail.fans->out : m.net;
  const double shared = m.rail.known() && !v.uniform() ? m.rail.next->slowest.beta_ns_per_byte
                                                       : m.net_all.beta_ns_per_byte * v.rails / double(v.fullest);
  hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, shared);
  return hop;
}

Cost inside_nodes(double bytes, const View& v, const CostModel& m) {
  const Rank g = Rank(v.fullest);
  if (g < 2) return 0;
  if (m.node_switch) return 2 * (*m.node_switch)(bytes);
  return pairwise_cost(g, bytes * g / v.rails, Paths(m.node, m.inside, m));
}

Cost nvls_tree_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count)), part = bytes / v.rails, combine = m.combine(part);
  if (c.count == 0) return 0;
  if (v.all.size == 1) return m.own_copy(c, bytes);
  Cost total = inside_nodes(bytes, v, m);
  const Hop hop = between_nodes(v, m);
  for (Count d = 1; 2 * d <= v.nodes; d *= 2) {
    // Low levels stay near.
    const double alpha_ns = m.rail.known() && !m.rail.trees->levels.empty()
                                ? LinkLoads::over(m.rail.trees->levels, d).one.alpha_ns
                                : hop.alpha_ns;
    total += 2 * (alpha_ns + part * hop.beta_ns_per_byte) + combine;
    if (2 * d < v.nodes)  // the second child
      total += std::max({combine, part * hop.beta_ns_per_byte, m.receive_overhead_ns}) +
               std::max(part * hop.beta_ns_per_byte, m.overhead_ns);
  }
  return total;
}

// On one node and on two a chunk begins to reduce while the one before it in its lane is on its way, so the links are
// busy all the time, but for what the first chunks of all lanes, which are in step, and the last ones wait for each
// other. On two nodes each part crosses once in each direction.
Cost interval_on_few_nodes(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count)), part = bytes / v.rails, lanes = double(s.lanes);
  const Hop& inside = *m.node_switch;
  const Hop hop = between_nodes(v, m);
  constexpr double kInFlight = 2.5;  // chunks in a lane: two where the tree's root is, three on the other node
  const Cost links = switch_links(inside, v.rails, bytes);
  Call first = c;
  first.count = c.count * s.lanes;
  const Cost one = nvls_tree_all_reduce_cost(c, v, m), block = nvls_tree_all_reduce_cost(first, v, m);
  Cost interval;
  if (v.nodes == 1)
    interval = std::max({links, 2 * m.exchange_gap_ns(), (one - inside.alpha_ns) / (2 * lanes)});
  else {
    const Cost carried = std::max(links + 2 * inside.alpha_ns / (lanes * lanes), part * hop.beta_ns_per_byte);
    const Cost cycle = 2 * (inside.alpha_ns + hop(part)) / (kInFlight * lanes);
    interval = std::max({v.uniform() ? std::max(carried, cycle) : cycles_meet(cycle, carried),
                         m.combine(part) * (s.lanes > 1 ? 2 : 3), 3 * m.exchange_gap_ns()});
  }
  return after_in_step(interval, one, block, s);
}

// What the ports reach of their rates; how much of a chunk's own way through a node its channel waits for, and how much
// of that all channels' first chunks, which are in one phase at a time, add in bytes. Fitted to both engines' times on
// 64 ranks of dgx-h100-superpod-2048 (1 GiB, 1 to 32 channels of 2 to 64 chunks), within 15 % of their mean.
constexpr double kPortsReached = 0.95, kWayInChannel = 0.4, kWayInStep = 0.4, kLatenciesInChannel = 0.1;

// For each level above those of that fit, with several channels: how much more the ports need, as channels that take
// turns drift apart, and how much of a chunk's messages with its neighbours those that begin in step add. Fitted to the
// model engine's times of 1 GiB on 128 to 2048 ranks of that cluster and of deepseek-v3-h800-2048.
constexpr double kLevelsOfFit = 3, kDriftOfLevel = 0.03, kLevelInStep = 0.8;

// How much of a chunk's way to the parent and back a channel takes from one chunk to the next: a place has as many
// chunks on their way as there are messages between it and the root (nvls_tree_trail), and these take that way once for
// each level, L of L + 1. In trees of two levels it is less (model engine, 4 to 7 nodes of dgx-h100-superpod-2048 and
// aws-p5, 0.53 to 0.61).
double share_of_way(double levels) { return levels == 2 ? 0.57 : levels / (levels + 1); }

// The ports as in allreduce/tree.cpp, where both trees together need trees_ns_per_byte: a channel uses all rails. A
// lane begins to reduce a chunk when the one before it is on its way to the next node.
Cost nvls_tree_all_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count)), part = bytes / v.rails;
  if (v.nodes <= 2) return interval_on_few_nodes(c, v, m, s);
  const Cost inside = switch_interval(*m.node_switch, v.rails, bytes, s.lanes, m.exchange_gap_ns());
  const Hop hop = between_nodes(v, m);
  const double trees = m.rail.known() ? m.rail.trees->ns_per_byte : 4 * m.net_all.beta_ns_per_byte;
  const double share = s.lanes > 1 ? 1.0 / 2 : v.nodes == 3 ? 2.0 / 3 : 3.0 / 4;
  const Cost port = part * trees * share / kPortsReached, combining = m.combine(part) * (s.lanes > 1 ? 2 : 3);
  const Cost latencies = inside_nodes(0, v, m) + 2 * hop.alpha_ns;
  const Cost passing = 4 * part * hop.beta_ns_per_byte + m.combine(part);
  const Cost way = inside_nodes(bytes, v, m) - inside_nodes(0, v, m) + passing;
  const Cost channel = (kLatenciesInChannel * latencies + kWayInChannel * way) / double(s.lanes);
  const double levels = std::floor(std::log2(double(v.nodes)));
  const double deep = s.lanes > 1 ? std::max(0.0, levels - kLevelsOfFit) : 0;
  const Cost step = (kWayInStep * way * double(s.lanes) + kLevelInStep * deep * passing) / double(s.shares);
  const Cost gaps = 5 * m.exchange_gap_ns();
  const Cost back = 2 * hop.alpha_ns + passing + inside_nodes(bytes, v, m) / 2;
  const Cost cycle = back * share_of_way(levels) / double(s.lanes);
  return std::max({combining, gaps, cycle, std::max(inside, port) * (1 + kDriftOfLevel * deep) + channel + step});
}

bool crossbar_nodes(const Call&, const View& v) { return v.all.size <= Count(v.nodes) * 256; }

}  // namespace

constexpr Algorithm allreduce_nvls_tree = {
    .name = "nvls_tree",
    .kind = Collective::allreduce,
    .source = "NVLSTree of NCCL 2.18",
    .steps = "at most 2 (g-1) + 4 floor(log2 k)",
    .bytes = "at most 2 (g-1)/g V + 3 V/g",
    .make = nvls_tree_all_reduce,
    .fits = crossbar_nodes,
    .limit = "it is for at most 256 ranks on each node",
    .cost = nvls_tree_all_reduce_cost,
    .interval = nvls_tree_all_reduce_interval,
    .in_switch = true,
    .first_half = switch_and_tree_up,
    .second_half = tree_down_and_switch,
    .trail = nvls_tree_trail,
};

}  // namespace gccl
