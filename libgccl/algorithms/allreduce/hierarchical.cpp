// Hierarchical all-reduce: reduce-scatter inside the node, all-reduce across the nodes for each place on a node (rail),
// all-gather inside the node. Each byte crosses the network as often as an all-reduce between the nodes alone needs;
// the steps and bytes of both parts add up. `hierarchical` is a ring inside and Rabenseifner across, and
// hierarchical(inner,outer) any other two parts.
//
// Nodes of different sizes: with r ranks on the smallest one, the rank at place j >= r of its node first adds its
// vector to the rank at place j mod r, stays out, and gets the result last.
#include "libgccl/algorithms/parts/rails.hpp"
#include "libgccl/algorithms/parts/two_level.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule with_guests(const Inner* inner, const Outer* outer, View v, Region in, Region out) {
  if (v.node.rank >= v.rails) {
    const Rank keeper = v.node[v.node.rank % v.rails];
    co_yield send(keeper, in);
    co_yield recv(keeper, out);
    co_return;
  }
  for (Count guest = Count(v.node.rank) + v.rails; guest < v.node.size; guest += v.rails) {
    co_yield recv_reduce(v.node[std::int64_t(guest)], in, out);
    in = out;
  }
  Group places = v.node;
  places.size = v.rails;
  co_yield two_level_all_reduce(inner, outer, places, v.rail, in, out);
  for (Count guest = Count(v.node.rank) + v.rails; guest < v.node.size; guest += v.rails)
    co_yield send(v.node[std::int64_t(guest)], out);
}

// Without guests it is the two levels and no frame around them: a simulation holds one for each of 100,000 ranks.
Schedule hierarchical_all_reduce_by(const Inner* inner, const Outer* outer, const Call& c, const View& v, Share mine) {
  const Region in = input_of(c, v, mine), out = output_of(c, v, mine);
  if (v.node.size > v.rails) return with_guests(inner, outer, v, in, out);
  return two_level_all_reduce(inner, outer, v.node, v.rail, in, out);
}

Cost hierarchical_all_reduce_by_cost(const Inner& inner, const Outer& outer, const Call& c, const View& v,
                                     const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  if (c.count == 0) return 0;
  if (v.all.size == 1) return m.own_copy(c, bytes);
  // Guests' vectors come and go at once, but are added one after the other. Of many chunks some come while others go.
  const double guests = on_first_rail(v, v.fullest) - 1;
  const Hop in = m.inside.known() ? m.inside.fans->in : m.node;
  const double port = m.inside.known() ? m.inside.fans->in_ns_per_byte : m.node.beta_ns_per_byte;
  const double gap = std::max({bytes * port, m.combine(bytes), m.receive_overhead_ns});
  const Cost come = in(bytes) + (guests - 1) * gap + m.combine(bytes),
             go = in(bytes) + (guests - 1) * std::max(bytes * port, m.overhead_ns);
  const Cost hosting = guests == 0 ? 0 : m.links_alone ? std::max(come, go) : come + go;
  return hosting + two_level_all_reduce_cost(inner, outer, v.rails, v.nodes, bytes, m);
}

template <const Inner& inner, const Outer& outer>
Schedule hierarchical_all_reduce(Call c, View v, Share mine) {
  return hierarchical_all_reduce_by(&inner, &outer, c, v, mine);
}
template <const Inner& inner, const Outer& outer>
Cost hierarchical_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  return hierarchical_all_reduce_by_cost(inner, outer, c, v, m);
}

// Texts one after the other, made by the compiler.
struct Joined {
  char text[96] = {};
  std::size_t size = 0;
  constexpr Joined(std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts)
      for (const char c : part) text[size++] = c;
  }
  constexpr operator std::string_view() const { return {text, size}; }
};

template <const Inner& inner, const Outer& outer>
struct Texts {
  static constexpr std::string_view bound = inner.bound || outer.bound ? "at most " : "";
  static constexpr Joined name{"hierarchical(", inner.name, ",", outer.name, ")"};
  static constexpr Joined steps{bound, inner.steps, " + ", outer.steps};
  static constexpr Joined bytes{bound, inner.bytes, " + ", outer.bytes};
};

template <const Inner& inner, const Outer& outer>
constexpr Algorithm combination = {
    .name = Texts<inner, outer>::name,
    .kind = Collective::allreduce,
    .source =
        "Traeff, Hunold, \"Decomposing MPI collectives for exploiting multi-lane communication\", Cluster 2020, III",
    .steps = Texts<inner, outer>::steps,
    .bytes = Texts<inner, outer>::bytes,
    .make = hierarchical_all_reduce<inner, outer>,
    .cost = hierarchical_all_reduce_cost<inner, outer>,
    .variant = true,
    .staggered = true,
};

constexpr Algorithm usual() {
  Algorithm a = combination<kInnerRing, kOuterRabenseifner>;
  a.name = "hierarchical";
  a.steps = "2 (g-1) + 2 log2 k; other k: at most 2 (g-1) + 4 ceil(log2 k) - 2";
  a.bytes = "2 (n-1)/n V";
  a.variant = false;
  return a;
}

constexpr Algorithm kHierarchicalRows[] = {
    usual(),
    combination<kInnerRing, kOuterRing>,
    combination<kInnerRing, kOuterRecursiveDoubling>,
    combination<kInnerRing, kOuterRabenseifner>,
    combination<kInnerRing, kOuterBinomialTree>,
    combination<kInnerRing, kOuterDoubleBinaryTree>,
    combination<kInnerRing, kOuterSwing>,
    combination<kInnerRecursiveHalving, kOuterRing>,
    combination<kInnerRecursiveHalving, kOuterRecursiveDoubling>,
    combination<kInnerRecursiveHalving, kOuterRabenseifner>,
    combination<kInnerRecursiveHalving, kOuterBinomialTree>,
    combination<kInnerRecursiveHalving, kOuterDoubleBinaryTree>,
    combination<kInnerRecursiveHalving, kOuterSwing>,
    combination<kInnerPairwise, kOuterRing>,
    combination<kInnerPairwise, kOuterRecursiveDoubling>,
    combination<kInnerPairwise, kOuterRabenseifner>,
    combination<kInnerPairwise, kOuterBinomialTree>,
    combination<kInnerPairwise, kOuterDoubleBinaryTree>,
    combination<kInnerPairwise, kOuterSwing>,
};

}  // namespace

constexpr std::span<const Algorithm> allreduce_hierarchical = kHierarchicalRows;

}  // namespace gccl
