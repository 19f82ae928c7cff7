// Hierarchical all-to-all and all-to-all-v: inside the node, each rank first hands every block to the member on the
// rail of its target, so that one message per node pair and rail crosses the network, as in NCCL 2.12 (PXN). On k nodes
// of g ranks a step inside carries k blocks and one across g: g times fewer messages on the network than pairwise and
// the same bytes there, for two copies and a hop inside per block. Works on nodes of different sizes: places beyond the
// rails share the rail of place % rails, whose member hands over what came for them. One node, or one rank on every
// node: the same as pairwise. Scratch: twice the largest of the rank's input, its rail's load and what its rail brings
// to the node.
#include <vector>

#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/parts/rails.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

bool flat(const View& v) { return v.nodes == 1 || v.nodes == v.all.size; }

// Two zones of scratch take turns: what one phase sends lies in `low`, what it receives in `high`, and the next phase
// sorts it back into `low`.
//
//   zone   packed      received            sorted                 received              sorted
//   low    by rail                         by (node, target, src)                       by target (places beyond rails)
//   high               by (src, node, target)                     by (node, target, src)
//
// Targets of a rail on a node are its places q, q + rails, ...
struct BundlePlan {
  Call c;
  View v;
  Share mine;

  Rank place() const { return v.node.rank; }
  bool on_rail() const { return v.node.rank < v.rails; }

  Count block(Rank from, Rank to) const { return block_count(c, mine, from, to); }
  // Elements from one rank, or from all of `sources`, to the ranks of `targets` on rail q.
  Count to_rail(Rank source, Group targets, Rank q) const {
    if (c.kind == Collective::alltoall) return on_rail_of(targets, q) * block(0, 0);
    Count total = 0;
    for (Rank t = q; t < targets.size; t += v.rails) total += block(source, targets[t]);
    return total;
  }
  Count to_rail(Group sources, Group targets, Rank q) const {
    if (c.kind == Collective::alltoall) return sources.size * on_rail_of(targets, q) * block(0, 0);
    Count total = 0;
    for (Rank s = 0; s < sources.size; ++s) total += to_rail(sources[s], targets, q);
    return total;
  }
  Count from_all(Group sources, Rank target) const {
    if (c.kind == Collective::alltoall) return sources.size * block(0, 0);
    Count total = 0;
    for (Rank s = 0; s < sources.size; ++s) total += block(sources[s], target);
    return total;
  }
  // What crosses from my node to node k on my rail, and back.
  Count leaving(Rank k) const { return to_rail(v.node, v.node_at(k), place()); }
  Count coming(Rank k) const { return to_rail(v.node_at(k), v.node, place()); }
  // Ranks of my node beyond the rails that share my rail: what comes for them comes to me.
  Rank served() const { return on_rail() ? (v.node.size - 1 - place()) / v.rails : 0; }
  Rank served(Rank i) const { return v.node[place() + (i + 1) * v.rails]; }

  // Elements of the lower zone; the upper one begins there.
  Count zone_elements() const {
    Count packed = 0, leaves = 0, comes = 0, mine_in = from_all(v.all, v.all.rank);
    for (Rank k = 0; k < v.nodes; ++k) {
      for (Rank q = 0; q < v.rails; ++q) packed += to_rail(v.all.rank, v.node_at(k), q);
      if (!on_rail()) continue;
      leaves += leaving(k);
      comes += coming(k);
    }
    return std::max({packed, leaves, comes, mine_in});
  }

 private:
  Count on_rail_of(Group g, Rank q) const { return q < g.size ? (g.size - q + v.rails - 1) / v.rails : 0; }
};

Region scratch(Count offset, Count count) { return {Buffer::scratch, offset, count}; }

// Finds the bundle of each node in a zone where they lie side by side: what crosses to the nodes, or from them. As in
// Displacement, moving by k nodes costs k evaluations of lengths, and so does starting again from node 0.
class Bundles {
 public:
  // `plan` outlives this.
  static Bundles leaving(const BundlePlan& plan, Count base) { return {plan, base, false}; }
  static Bundles coming(const BundlePlan& plan, Count base) { return {plan, base, true}; }

  Region operator[](Rank k) {
    if (k == 0) {
      node_ = 0;
      at_ = base_;
    }
    while (node_ < k) at_ += length(node_++);
    while (node_ > k) at_ -= length(--node_);
    return scratch(at_, length(k));
  }

 private:
  Bundles(const BundlePlan& plan, Count base, bool incoming)
      : plan_(plan), base_(base), at_(base), incoming_(incoming) {}
  Count length(Rank k) const { return incoming_ ? plan_.coming(k) : plan_.leaving(k); }

  const BundlePlan& plan_;
  const Count base_;
  Count at_;  // where that of node_ begins
  Rank node_ = 0;
  bool incoming_;
};

// Sorts the input by rail into the lower zone and hands each rail's part to its member of the node.
Schedule to_rails(BundlePlan plan, Count high) {
  const View& v = plan.v;
  const Rank n = v.all.size, r = v.all.rank, g = v.node.size;
  Displacement source = Displacement::sent(plan.c, plan.mine, r, input_of(plan.c, n, r));
  std::vector<Count> packed(v.rails + 1, 0);  // where what goes to each rail begins in the lower zone
  for (Rank q = 0; q < v.rails; ++q) {
    packed[q + 1] = packed[q];
    for (Rank k = 0; k < v.nodes; ++k) packed[q + 1] += plan.to_rail(r, v.node_at(k), q);
  }
  std::vector<Count> next(packed.begin(), packed.end() - 1);
  for (Rank k = 0; k < v.nodes; ++k) {
    const Group targets = v.node_at(k);
    for (Rank t = 0; t < targets.size; ++t) {
      const Region block = source[targets[t]];
      co_yield copy(block, scratch(next[t % v.rails], block.count));
      next[t % v.rails] += block.count;
    }
  }
  std::vector<Count> received(g + 1, high);  // where what each member of the node sends begins in the upper zone
  for (Rank s = 0; plan.on_rail() && s < g; ++s) {
    received[s + 1] = received[s];
    for (Rank k = 0; k < v.nodes; ++k) received[s + 1] += plan.to_rail(v.node[s], v.node_at(k), plan.place());
  }
  for (Rank s = 0; s < g; ++s) {
    const Rank to = v.node.ahead(s), from = v.node.behind(s);  // places
    const Region out = to < v.rails ? scratch(packed[to], packed[to + 1] - packed[to]) : scratch(0, 0);
    const Region in = scratch(received[from], received[from + 1] - received[from]);
    if (s == 0 && plan.on_rail()) co_yield copy(out, in);
    if (s > 0 && to < v.rails) co_yield send(v.node[to], out);
    if (s > 0 && plan.on_rail()) co_yield recv(v.node[from], in);
  }
}

// Sorts what the node gave this rail by target node into the lower zone.
Schedule sort_by_node(BundlePlan plan, Count high) {
  const View& v = plan.v;
  std::vector<Count> next(v.node.size, high);  // the next element of each source
  for (Rank s = 0; s + 1 < v.node.size; ++s) {
    next[s + 1] = next[s];
    for (Rank k = 0; k < v.nodes; ++k) next[s + 1] += plan.to_rail(v.node[s], v.node_at(k), plan.place());
  }
  Count to = 0;
  for (Rank k = 0; k < v.nodes; ++k) {
    const Group targets = v.node_at(k);
    for (Rank t = plan.place(); t < targets.size; t += v.rails) {
      for (Rank s = 0; s < v.node.size; ++s) {
        const Count size = plan.block(v.node[s], targets[t]);
        co_yield copy(scratch(next[s], size), scratch(to, size));
        next[s] += size;
        to += size;
      }
    }
  }
}

// Exchanges with the other nodes along the rail. `straight`: what comes from a node is a run of the output.
Schedule across(BundlePlan plan, Count high, bool straight) {
  const View& v = plan.v;
  const Rank n = v.all.size, r = v.all.rank;
  Displacement target = Displacement::received(plan.c, plan.mine, r, output_of(plan.c, n, r));
  Bundles leaving = Bundles::leaving(plan, 0), coming = Bundles::coming(plan, high);
  for (Rank s = 0; s < v.nodes; ++s) {
    const Rank to = v.rail.ahead(s), from = v.rail.behind(s);  // nodes
    const Group sources = v.node_at(from);
    const Region bundle = leaving[to];
    const Region arrived = straight ? target.run(sources[0], sources.size) : coming[from];
    co_yield s == 0 ? copy(bundle, arrived) : send(v.rail[to], bundle);
    if (s > 0) co_yield recv(v.rail[from], arrived);
  }
}

// Takes what came, node by node, to its places: my own blocks to the output, the others' to the ranks that I serve.
Schedule hand_over(BundlePlan plan, Count high) {
  const View& v = plan.v;
  const Rank n = v.all.size, r = v.all.rank;
  Displacement target = Displacement::received(plan.c, plan.mine, r, output_of(plan.c, n, r));
  std::vector<Count> sorted{0};  // where what goes to each rank that I serve begins in the lower zone
  for (Rank i = 0; i < plan.served(); ++i) sorted.push_back(sorted.back() + plan.from_all(v.all, plan.served(i)));
  std::vector<Count> next(sorted.begin(), sorted.end() - 1);
  for (Rank k = 0; k < v.nodes; ++k) {
    const Group sources = v.node_at(k);
    for (Rank s = 0; s < sources.size; ++s) {
      const Region block = target[sources[s]];
      co_yield copy(scratch(high, block.count), block);
      high += block.count;
    }
    for (Rank i = 0; i < plan.served(); ++i) {
      const Count size = plan.from_all(sources, plan.served(i));
      co_yield copy(scratch(high, size), scratch(next[i], size));
      high += size;
      next[i] += size;
    }
  }
  for (Rank i = 0; i < plan.served(); ++i) co_yield send(plan.served(i), scratch(sorted[i], sorted[i + 1] - sorted[i]));
}

Schedule hierarchical_all_to_all(Call c, View v, Share mine) {
  const BundlePlan plan{c, v, mine};
  if (flat(plan.v)) {
    co_yield alltoall_pairwise.make(c, v, mine);
    co_return;
  }
  const bool straight = mine.of == 1 && v.uniform() && !v.members;
  const Count high = plan.zone_elements();
  co_yield to_rails(plan, high);
  if (plan.on_rail()) {
    co_yield sort_by_node(plan, high);
    co_yield across(plan, high, straight);
  } else {
    co_yield recv(v.node[plan.place() % v.rails], scratch(high, plan.from_all(v.all, v.all.rank)));
  }
  if (!straight) co_yield hand_over(plan, high);
}

// Ranks must know what others send, which a call with places need not say.
bool hierarchical_all_to_all_fits(const Call& c, const View&) { return !c.places; }

Count hierarchical_all_to_all_scratch(const Call& c, const View& v, Share mine) {
  const BundlePlan plan{c, v, mine};
  return flat(plan.v) ? alltoall_pairwise.scratch(c, v, mine) : 2 * plan.zone_elements();
}

// Of nodes of different sizes the first rail of the fullest has most to do: it takes what goes to all ranks on its rail
// from the others of its node, exchanges that with the other nodes, and hands over what came to those that share it.
Cost hierarchical_all_to_all_cost(const Call& c, const View& v, const CostModel& m) {
  if (flat(v)) return alltoall_pairwise.cost(c, v, m);
  const double n = v.all.size, nodes = v.nodes, g = v.fullest, block = m.bytes(mean_block(c, v.all.size));
  const double load = on_first_rail(v), own = on_first_rail(v, v.fullest);  // ranks on that rail, and on its node
  const auto exchange = [&](double others, const LinkLoads& loads, const Hop& hop, double bytes) {
    const Hop &pairs = loads.known() ? loads.pairs->mean : hop, &alone = loads.known() ? loads.pairs->alone : hop;
    return pairs_train(others, pairs, alone, loads.stretch, bytes, m, 2);
  };
  const double crosses = std::max(g * (load - own), own * (n - g));  // blocks that it sends, or gets
  const Cost inside = exchange(g - 1, m.inside, m.node, load * block);
  const Cost over = exchange(nodes - 1, m.rail, v.rails > 1 ? m.net_all : m.net, crosses / (nodes - 1) * block);
  const Cost served = pipelined(own - 1, m.node, n * block, m.overhead_ns, 1);
  const double copies = v.uniform() ? 2 * n : n + g * load + n * own;
  // Of several chunks some come to the first rail's members while others leave them, by links of their own.
  const Cost near = m.links_alone ? std::max(inside, served) : inside + served;
  return std::max(near + over + m.copy(copies * block), busiest_rank_cost(c, v, m, true));
}

}  // namespace

constexpr Algorithm alltoall_hierarchical = {
    .name = "hierarchical",
    .kind = Collective::alltoall,
    .source = "Traeff, Rougier, \"MPI collectives and datatypes for hierarchical all-to-all\", EuroMPI/ASIA 2014",
    .steps = "(g-1) + (k-1)",
    .bytes = "k (g-1) b + (k-1) g b",
    .make = hierarchical_all_to_all,
    .scratch = hierarchical_all_to_all_scratch,
    .fits = hierarchical_all_to_all_fits,
    .limit = "it takes blocks side by side, without displacements",
    .cost = hierarchical_all_to_all_cost,
    .same_as = [](const View& v) { return flat(v) ? &alltoall_pairwise : nullptr; },
};
constexpr Algorithm alltoallv_hierarchical = alltoall_hierarchical.of(Collective::alltoallv);

}  // namespace gccl
