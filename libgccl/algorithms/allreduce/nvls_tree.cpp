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
#include "libgccl/cost/pipelined.hpp"

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

// All rails at once, which may share NICs.
Hop between_nodes(const View& v, const CostModel& m) {
  Hop hop = m.rail.known() ? m.rail.fan_out : m.net;
  hop.beta_ns_per_byte =
      std::max(hop.beta_ns_per_byte, m.net_all.beta_ns_per_byte * v.rails / double(CostModel::per_node(v)));
  return hop;
}

Cost inside_nodes(double bytes, const View& v, const CostModel& m) {
  const Rank g = Rank(CostModel::per_node(v));
  if (g < 2) return 0;
  if (m.node_switch) return 2 * (*m.node_switch)(bytes);
  return pairwise_cost(g, bytes * g / v.rails, Paths(m.node, m.inside, m));
}

// One chunk of so many bytes, alone.
Cost through(double bytes, const View& v, const CostModel& m) {
  const double part = bytes / v.rails, combine = m.combine(part);
  Cost total = inside_nodes(bytes, v, m);
  const Hop hop = between_nodes(v, m);
  for (Count d = 1; 2 * d <= v.nodes; d *= 2) {
    // Low levels stay near.
    const double alpha_ns = m.rail.trees.empty() ? hop.alpha_ns : LinkLoads::over(m.rail.trees, d).one.alpha_ns;
    total += 2 * (alpha_ns + part * hop.beta_ns_per_byte) + combine;
    if (2 * d < v.nodes)  // the second child
      total += std::max({combine, part * hop.beta_ns_per_byte, m.receive_overhead_ns}) +
               std::max(part * hop.beta_ns_per_byte, m.overhead_ns);
  }
  return total;
}

Cost nvls_tree_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  if (c.count == 0) return 0;
  if (v.all.size == 1) return c.in_place ? 0 : m.copy(bytes);
  return through(bytes, v, m);
}

// How much of the latencies of a chunk's messages its channel waits for; how much longer the ports take for each level,
// as channels that pass them in turns drift apart; and what channels that begin in step add to the first chunk, of each
// level's bytes and of the ports' time, as far as bytes and not latencies make it long. Fitted to the model engine's
// times on dgx-h100-superpod-2048 and deepseek-v3-h800-2048 (2 to 256 nodes, 16 MiB and 1 GiB, 1 to 16 channels of 1, 4
// and 16 chunks): 11 % in the root mean square.
constexpr double kLatenciesWaited = 0.6, kDriftOfLevel = 0.045, kLevelInStep = 0.4, kPortsInStep = 1.7;

// The ports as in allreduce/tree.cpp, where both trees together need trees_ns_per_byte: a channel uses all rails.
Cost nvls_tree_all_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count)), part = bytes / v.rails, g = CostModel::per_node(v);
  const Cost inside = switch_interval(*m.node_switch, g, bytes, s.lanes, m.exchange_gap_ns());
  if (v.nodes == 1) return inside;
  const Hop hop = between_nodes(v, m);
  const double trees = m.rail.known() ? m.rail.trees_ns_per_byte : 4 * m.net_all.beta_ns_per_byte;
  const double share = s.lanes > 1 || v.nodes == 2 ? 1.0 / 2 : v.nodes == 3 ? 2.0 / 3 : 3.0 / 4;
  const double levels = std::floor(std::log2(double(v.nodes))), neighbours = v.nodes == 2 ? 2 : 4;
  const double drift = s.lanes > 1 ? 1 + kDriftOfLevel * levels : 1;
  const Cost ports = std::max(inside, part * trees * share) * drift;
  const Cost latencies = inside_nodes(0, v, m) + neighbours * hop.alpha_ns;
  const Cost passing = neighbours * part * hop.beta_ns_per_byte + m.combine(part);
  const Cost whole = kLatenciesWaited * latencies + inside_nodes(bytes, v, m) - inside_nodes(0, v, m) + passing;
  const Cost combining = m.combine(part) * (s.lanes > 1 ? 2 : 3), gaps = (neighbours + 1) * m.exchange_gap_ns();
  const Cost interval = std::max({combining, gaps, meeting(whole, ports, chunks_in_flight(s, 4))});

  const Cost one = through(bytes, v, m);
  const double of_bytes = std::sqrt(std::max(0.0, one - through(0, v, m)) / one);
  const Cost in_step = (s.lanes > 2 ? kLevelInStep * levels * passing : 0) + kPortsInStep * double(s.lanes - 1) * ports;
  return after_in_step(interval, one, one + of_bytes * in_step, s);
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
