// NCCL's tree: a chain inside each node, and a binary tree over the first members of the chains. Channels begin their
// chains at different places, so each uses another rail, and when all rails have a channel the next ones take the
// second of the two trees of a double binary tree, whose inner places are the first one's leaves. A vector goes up the
// chain and the tree and down again; in many chunks both directions of every link are busy.
#include <algorithm>
#include <bit>
#include <cmath>

#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/bunch.hpp"
#include "libgccl/cost/in_order_tree.hpp"
#include "libgccl/cost/pipelined.hpp"
#include "libgccl/schedule/channel.hpp"

namespace gccl {
namespace {

TreePlace place_in_tree(const View& v, const Group& heads) {
  return v.channel / v.rails % 2 ? second_tree(heads.rank + 1, heads.size) : first_tree(heads.rank + 1, heads.size);
}

Schedule chain_and_tree_up(Call c, View v, Share mine) {
  const ChannelChain chain(v);
  Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  if (!chain.tail()) {
    co_yield recv_reduce(chain.next, in, out);
    in = out;
  }
  if (!chain.head()) {
    co_yield send(chain.before, in);
  } else {
    if (v.all.size == 1) co_yield copy(in, out);
    co_yield tree_up(chain.heads, place_in_tree(v, chain.heads), in, out);
  }
}

Schedule chain_and_tree_down(Call c, View v, Share mine) {
  const ChannelChain chain(v);
  const Region out = output_of(c, v, mine);
  if (chain.head())
    co_yield tree_down(chain.heads, place_in_tree(v, chain.heads), out);
  else
    co_yield recv(chain.before, out);
  if (!chain.tail()) co_yield send(chain.next, out);
}

Schedule tree_all_reduce(Call c, View v, Share mine) {
  co_yield chain_and_tree_up(c, v, mine);
  co_yield chain_and_tree_down(c, v, mine);
}

// As many as there are messages between this rank and the root. With twice as many, there and back, a window of 2 may
// be full of a share on its way down that the rank below asks for two shares later, behind two on their way up.
Count tree_trail(const View& v) {
  const ChannelChain chain(v);
  TreePlace place = place_in_tree(v, chain.heads);
  Count away = chain.rank;
  for (Group up = chain.heads; place.parent; ++away) {
    up.rank = place.parent - 1;
    place = place_in_tree(v, up);
  }
  return away;
}

// Between the first members of chains, which of several channels are on different rails.
const Hop& across(const CostModel& m) { return m.rail.known() ? m.rail.fans->out : m.net; }
const Hop& along(const CostModel& m) { return m.inside.known() ? m.inside.next->ring.next_alone : m.node; }

// The messages of a chunk, or of one on each of several channels at once, of which a card combines so many in the tree,
// and a port carries so many.
struct Ways {
  Hop chain, tree;
  Cost chain_combine, tree_combine;
  Cost second_taken_ns, second_sent_ns;  // how much later than the first one a place takes or sends its second message

  Ways(const CostModel& m, double bytes, double combines = 1, double carries = 1)
      : chain(along(m)), tree(across(m)), chain_combine(m.combine(bytes)), tree_combine(combines * m.combine(bytes)) {
    tree.beta_ns_per_byte *= carries;
    const Cost passes = bytes * tree.beta_ns_per_byte;
    second_taken_ns = std::max(passes, m.receive_overhead_ns);
    second_sent_ns = std::max(passes, m.overhead_ns);
  }

  // There and back between a chain's first member and one so many links behind it. The chains of all nodes act at once.
  Cost along_chain(double links, double bytes) const { return links * (2 * chain(bytes) + chain_combine); }
  // The same between a tree's root and its farthest place; the two children of a place share its port, up and down
  // again.
  Cost along_tree(Rank nodes, double bytes) const {
    const InOrderTree places{nodes};
    const Cost hop = tree(bytes);
    return places.up(hop, second_taken_ns, tree_combine) + places.down(hop, second_sent_ns);
  }
};

// Messages between the farthest place of a tree (binary_tree.hpp) and its root.
Count levels_of(Rank nodes) { return Count(std::bit_width(nodes)) - 1; }

Cost tree_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  if (c.count == 0) return 0;
  if (v.all.size == 1) return m.own_copy(c, bytes);
  const Ways ways(m, bytes);
  return ways.along_chain(v.fullest - 1, bytes) + ways.along_tree(v.nodes, bytes);
}

// The first chunks of all channels at once. Channels whose chains begin at one place go from card to card one behind
// the other; of those at other places each is on a card of its own, and links may be shared with them. On a port, of
// which so many are used, are those of the first tree, as those of the second go the other way.
Cost first_chunks(const View& v, const CostModel& m, double bytes, double lanes, double ports) {
  const double g = v.fullest, places = v.wiring == View::Wiring::unknown ? 1 : v.rails;
  const double together = std::max(1.0, std::round(lanes / places));
  Hop hop = along(m);
  const double all = m.inside.known() ? m.inside.next->ring.busiest.beta_ns_per_byte : hop.beta_ns_per_byte;
  hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, lanes / g * all / together);
  Bunch bunch(Rank(together), m.exchange_gap_ns());
  Cost end = bunch.begin();
  for (Rank i = 1; i < 2 * v.fullest - 1; ++i) {
    end = bunch.pass_on(end, hop, bytes);
    if (i < v.fullest) end = bunch.combine(end, m.combine(bytes));
  }
  // Each card has most of them there and back to send, and all but the heads' to combine.
  const Cost sends = 2 * std::max(m.exchange_gap_ns(), bytes * along(m).beta_ns_per_byte);
  end = std::max(end, hop.alpha_ns + lanes * (g - 1) / g * std::max(sends, m.combine(bytes)));
  const double both = 2.0 * v.rails, rest = std::fmod(lanes, both);
  const double first_tree = (lanes - rest) / 2 + std::min<double>(rest, v.rails);
  return end + Ways(m, bytes, std::max(1.0, first_tree / v.rails), std::max(1.0, first_tree / ports))
                   .along_tree(v.nodes, bytes);
}

// What so many chunks of one channel wait for each other. A place between others waits for a chunk on its way down
// before it passes the next but `away` up, where the root is so many messages away (tree_trail): whatever the window,
// away + 1 are on their way there and back, and the next ones follow when these have come. The last place of a chain,
// or of a tree without chains, also has those in its window.
Cost tree_waits(const View& v, const CostModel& m, double bytes, double chunks, Count window) {
  const Ways ways(m, bytes);
  const double g = v.fullest, levels = double(levels_of(v.nodes));
  const auto waits = [&](Cost way, double in_flight) { return std::floor((chunks - 1) / in_flight) * way; };
  const Cost tree = ways.along_tree(v.nodes, bytes);
  Cost most = waits(ways.along_chain(g - 1, bytes) + tree, levels + g - 1 + double(window / 2));
  if (g > 1)
    most = std::max(most, waits(tree, levels + 1));
  else if (levels > 1)
    most = std::max(most, waits(ways.along_tree(v.nodes / 2, bytes), levels));
  if (g > 2) most = std::max(most, waits(ways.along_chain(g - 2, bytes) + tree, levels + g - 1));
  return most;
}

// What the first members of chains, which wait for their two children and their chain in turn, reach of their ports'
// rates: all of it in shallow trees, in others the more the more channels each port has. By the model engine, 64 MiB
// and 1 GiB on 2 to 32 nodes of nine clusters.
double reached_of_ports(Rank nodes, double channels_a_port) {
  const double alone = nodes < 6 ? 1 : nodes < 8 ? 0.9 : 0.67;
  return std::min(1.0, alone + 0.1 * std::log2(std::max(1.0, channels_a_port)));
}

// While every rail's two trees carry a byte in each message, up and down, the busiest link needs trees_ns_per_byte:
// four times a port's where nothing else is shared, three of them in the tree in which it has children (of three and of
// two nodes, two of three and one of two). Channels of the first tree alone leave the rest. Fewer channels than rails
// share no port.
Cost tree_all_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count)), rails = std::min<double>(double(s.lanes), v.rails);
  const double g = v.fullest, lanes = double(s.lanes);
  // Chains that begin at fewer places than a node has cards all pass the others, there and back.
  const double passed = s.lanes < g || v.rails < g ? 1 : (g - 1) / g;
  const double links = g < 3 ? g - 1 : 2 * passed;
  const bool both = s.lanes > v.rails;
  const double trees = m.rail.known() ? m.rail.trees->ns_per_byte : 4 * m.net_all.beta_ns_per_byte;
  const double share = both ? 1.0 / 2 : v.nodes == 2 ? 1.0 / 2 : v.nodes == 3 ? 2.0 / 3 : 3.0 / 4;
  const double alone = std::min(4.0, double(v.nodes)) * m.net.beta_ns_per_byte;
  const double rails_a_port = alone > 0 ? std::max(1.0, trees / alone) : 1;
  const double used = std::min(lanes, v.rails / rails_a_port);  // ports
  const double port = v.nodes > 1 ? bytes * alone / used * share / reached_of_ports(v.nodes, lanes / used) : 0;
  // Chains of many channels together exchange with both neighbours, but where one of them begins.
  const bool many = s.lanes > 2 && g > 1 && m.inside.known();
  const double neighbors = many ? passed * *m.inside.neighbors_ns_per_byte : 0;
  // Of g members that are joined pairwise each g / 2 channels' chains use every pair once, up one way and down the
  // other.
  const bool pairwise = v.wiring == View::Wiring::mesh && g > 2;
  const double inside = bytes * (pairwise ? std::ceil(2 * lanes / g) / lanes * along(m).beta_ns_per_byte
                                          : std::max(links * along(m).beta_ns_per_byte, neighbors));
  const double combining = m.combine(bytes) * (v.nodes > 1 ? std::max(1.0, (both ? 2 : 3) / rails) : 1);
  const double each = std::ceil(double(s.shares) / lanes);
  const Cost cycle = each > 1 ? tree_waits(v, m, bytes, each, s.window) / (each - 1) / lanes : 0;
  // On a torus of cards chains and trees share the links.
  const double links_busy = v.wiring == View::Wiring::unknown ? port + inside : std::max(port, inside);
  // On nodes of different sizes what is busiest waits for lanes' cycles that are nearly as long (7 to 56 ranks of nine
  // clusters on the flow engine: off by 33 % at worst without it, 27 % with it; where nodes are alike it would be
  // worse).
  const Cost busy = v.uniform() ? std::max(cycle, links_busy) : cycles_meet(cycle, links_busy);
  const Cost interval = std::max({busy, combining, (links + (v.nodes > 1 ? 3 / rails : 0)) * m.exchange_gap_ns()});
  const Cost block = first_chunks(v, m, bytes, lanes, used);
  return after_in_step(interval, tree_all_reduce_cost(c, v, m), block, s);
}

}  // namespace

constexpr Algorithm allreduce_tree = {
    .name = "tree",
    .kind = Collective::allreduce,
    .source = "NCCL 2.4 (Jeaugey, \"Massively scale your deep learning training with NCCL 2.4\", NVIDIA blog, 2019)",
    .steps = "at most 2 (g-1) + 4 floor(log2 k)",
    .bytes = "at most 4 V",
    .make = tree_all_reduce,
    .cost = tree_all_reduce_cost,
    .interval = tree_all_reduce_interval,
    .first_half = chain_and_tree_up,
    .second_half = chain_and_tree_down,
    .trail = tree_trail,
};

}  // namespace gccl
