// Hierarchical all-gather: blocks cross nodes once for each node, along rails, and are handed round inside the node
// while the next ones come in. Two-level rings as in the source and in Mamidala, Vishnu and Panda, same proceedings;
// one ring per rail instead of one leader per node. On k nodes of g ranks a rank sends k-1 blocks across and k (g-1)
// inside. On nodes of different sizes a rail also carries the blocks of places beyond the rails, which fold onto it
// first.
#include <algorithm>

#include "libgccl/algorithms/parts/rails.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

// Rail j carries the blocks of places j, j + rails, ... of every node.

// Along the rail: those of node `give` to the next node, those of node `take` from the one before.
Schedule cross(View v, Region in, Blocks out, Rank give, Rank take) {
  const Group giving = v.node_at(give), taking = v.node_at(take);
  const Rank next = v.rail[v.rail.ahead(1)], before = v.rail[v.rail.behind(1)];
  for (Rank place = v.node.rank; place < std::max(giving.size, taking.size); place += v.rails) {
    if (place < giving.size) co_yield send(next, giving[place] == v.all.rank ? in : out[giving[place]]);
    if (place < taking.size) co_yield recv(before, out[taking[place]]);
  }
}

// A ring inside my node for the blocks of node k, of which places below `rails` hold their rail's. Nobody gets his own.
Schedule hand_round(View v, Region in, Blocks out, Rank k) {
  const Group owners = v.node_at(k);
  const Rank g = v.node.size, r = v.all.rank;
  const Rank next = v.node[v.node.ahead(1)], before = v.node[v.node.behind(1)];
  for (Rank s = 0; s + 1 < g; ++s) {
    Rank give = v.node.behind(s), take = v.node.behind(s + 1);
    if (give >= v.rails) give = owners.size;
    if (take >= v.rails) take = owners.size;
    for (; give < owners.size || take < owners.size; give += v.rails, take += v.rails) {
      if (give < owners.size && owners[give] != next) co_yield send(next, owners[give] == r ? in : out[owners[give]]);
      if (take < owners.size && owners[take] != r) co_yield recv(before, out[owners[take]]);
    }
  }
}

Schedule hierarchical_all_gather(Call c, View v, Share mine) {
  const Region in = input_of(c, v, mine);
  const Blocks out = output_blocks(c, v, mine);
  const Rank place = v.node.rank, node = v.rail.rank;
  if (place >= v.rails) co_yield send(v.node[place % v.rails], in);
  for (Rank p = place + v.rails; place < v.rails && p < v.node.size; p += v.rails)
    co_yield recv(v.node[p], out[v.node[p]]);
  // Node s steps back goes round the node while the next one comes along the rail.
  for (Rank s = 0; s < v.nodes; ++s) {
    const Rank here = (node + v.nodes - s) % v.nodes, coming = (here + v.nodes - 1) % v.nodes;
    if (place < v.rails && s + 1 < v.nodes) co_yield cross(v, in, out, here, coming);
    co_yield hand_round(v, in, out, here);
    if (s == 0) co_yield copy(in, out[v.all.rank]);
  }
}

// The ranks beyond the rails send theirs at once to those that carry them.
Cost folding(double fold, double block, const CostModel& m) {
  if (fold <= 1) return 0;
  if (!m.inside.known()) return pipelined(fold - 1, m.node, block, m.receive_overhead_ns, 1);
  const LinkLoads::Fans& fans = *m.inside.fans;
  return fans.in(block) + (fold - 2) * std::max(block * fans.in_ns_per_byte, m.receive_overhead_ns);
}

// A node that takes what comes along the rails: its members, and how many blocks of each other node's come on the first
// rail and on all of them in the mean; and how many of a node's it hands round that it has on the first rail, its own
// among them, until the last one's come, and of the last one's.
struct Taker {
  double members, on_first, on_all, before, last;
};

// From when the blocks that fold are there until a node has all blocks.
Cost taking(const Taker& t, double block, const View& v, const CostModel& m) {
  const double nodes = v.nodes, g = t.members, gap = m.exchange_gap_ns();
  const Hop& across = m.rail.known() ? m.rail.shifts->plain[0] : v.rails > 1 ? m.net_all : m.net;
  const Hop &hop = m.inside.known() ? m.inside.next->ring.next : m.node,
            &busiest = m.inside.known() ? m.inside.next->ring.busiest : m.node;
  // Blocks that share a rail follow each other round the node. A rank takes all of them before it passes the first on,
  // but for those that a window holds, where one place of the node has them all.
  const Cost link = std::max(block * busiest.beta_ns_per_byte, gap), held = hop(block) / kStepsInFlight,
             following = std::max(link, 2 * held), held_back = v.rails > 1 ? following : std::max(link, held);
  const auto lag = [&](double blocks) { return std::max(0.0, blocks - kStepsInFlight) * held_back; };
  const Cost ring = m.inside.known() ? m.inside.ring(g - 1, block, 0, m.met(block)) : (g - 1) * m.node(block);
  const Cost round = g > 1 ? ring + (g - 1) * lag(t.last) + (t.last - 1) * following : 0;
  // All rails together carry what they do in the mean, the first one more.
  const Hop alone{across.alpha_ns,
                  m.rail.known() ? m.rail.next->ring.slowest.beta_ns_per_byte : m.net.beta_ns_per_byte};
  const Cost over = std::max(pipelined(t.on_all, across, block, gap, 2), pipelined(t.on_first, alone, block, gap, 2));
  // A round of a node's blocks begins once the last send of the round before could, whose message the last receive but
  // one brought: the last hop of each round passes concurrently with the next one's first, which leaves behind that
  // send and what goes along the rail. Of a single rail's blocks a rank's last send waits for no others.
  const Cost behind = std::max((1 + t.before) * m.overhead_ns, block * busiest.beta_ns_per_byte);
  const double waits = v.rails > 1 || t.before == 1 ? g - 2 : 0;
  const double passing = t.before > 1 ? v.all.size / nodes : g - 1;  // of each node's blocks, over each link
  const Cost inside = g > 1 ? std::max({waits * hop(block) + lag(t.before) + (t.before - 1) * following + behind,
                                        passing * block * busiest.beta_ns_per_byte, passing * gap})
                            : 0;
  // With a window full of steps inside the node no two blocks are on one hop of the rail, and the slowest one counts.
  const Cost slowest = m.rail.known() ? std::min(1.0, 2 * g / kStepsInFlight) * m.rail.next->slowest(block) : 0;
  return (nodes - 1) * std::max({inside, over, slowest, block * m.rings_ns_per_byte.value_or(0)}) + round;
}

Cost hierarchical_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count)), others = std::max(1.0, v.nodes - 1.0), rails = v.rails;
  const double fold = on_first_rail(v, v.fullest), all = on_first_rail(v);
  const auto taker = [&](double members, double own, double before, double last) {
    return v.nodes > 1 ? Taker{members, (all - own) / others, (v.all.size - members) / rails / others, before, last}
                       : Taker{members, 1, 1, before, last};
  };
  // The fullest node takes least, and hands it, and its own blocks, round among most.
  Cost t = taking(taker(v.fullest, fold, fold, fold), block, v, m);
  if (!v.uniform()) t = std::max(t, taking(taker(rails, 1, v.nodes > 2 ? fold : 1, fold), block, v, m));
  return std::max(folding(fold, block, m) + t, m.own_copy(c, block));
}

}  // namespace

constexpr Algorithm allgather_hierarchical = {
    .name = "hierarchical",
    .kind = Collective::allgather,
    .source = "Traeff, \"Efficient allgather for regular SMP-clusters\", EuroPVM/MPI 2006",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = hierarchical_all_gather,
    .cost = hierarchical_all_gather_cost,
    .rounds = true,
    .one_phase = true,
};

}  // namespace gccl
