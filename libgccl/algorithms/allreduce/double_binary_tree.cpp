// Double binary tree all-reduce: two binary trees carry half of the vector each, up to their roots and down again; a
// rank has children in only one of them, so its port is used fully in both directions. Used by NCCL since 2.4. At most
// 4 floor(log2 n) messages deep; a rank sends one vector up (half of it in each tree) and half a vector to each child.
#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/binary_tree.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
// Equal subtrees send at the same time. Where ranks act in order, the lower rank's message is through the port first.
Schedule tree_up(Group g, TreePlace t, Region in, Region out) {
  Region have = in;
  const Rank first = std::min(t.left, t.right), second = std::max(t.left, t.right);
  if (first) {
    co_yield recv_reduce(g[first - 1], have, out);
    have = out;
  }
  if (second) {
    co_yield recv_reduce(g[second - 1], have, out);
    have = out;
  }
  if (t.parent) co_yield send(g[t.parent - 1], have);
}

Schedule tree_down(Group g, TreePlace t, Region out) {
  if (t.parent) co_yield recv(g[t.parent - 1], out);
  if (t.left) co_yield send(g[t.left - 1], out);
  if (t.right) co_yield send(g[t.right - 1], out);
}

Schedule double_binary_tree_all_reduce(Group g, Region in, Region out) {
  if (g.size == 1) co_yield copy(in, out);
  const TreePlace first = first_tree(g.rank + 1, g.size), second = second_tree(g.rank + 1, g.size);
  // A leaf's message waits for nobody, so it goes before the sums of the other tree: both trees rise together.
  if (second.leaf() && !first.leaf()) {
    co_yield tree_up(g, second, in.part(1, 2), out.part(1, 2));
    co_yield tree_up(g, first, in.part(0, 2), out.part(0, 2));
  } else {
    co_yield tree_up(g, first, in.part(0, 2), out.part(0, 2));
    co_yield tree_up(g, second, in.part(1, 2), out.part(1, 2));
  }
  // Every rank goes down the first tree first, so no two ranks can wait for each other.
  co_yield tree_down(g, first, out.part(0, 2));
  co_yield tree_down(g, second, out.part(1, 2));
}

// An inner rank's two children send at the same time: the second half-vector follows the first through the port while
// that is combined. On the way down the right child gets its half-vector after the left one.
Cost double_binary_tree_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  const double half = bytes / 2, combine = p.model().combine(half);
  Cost total = 0, latency = 0;
  for (Count d = 1; 2 * d <= n; d *= 2) {
    const TreeLevel level = p.trees(d, false);
    latency += 2 * level.one.alpha_ns;
    if (2 * d == n)  // the root has one child
      total += 2 * level.one(half) + combine;
    else
      total += level.later(half, std::max(combine, p.model().receive_overhead_ns)) + combine +
               level.later(half, p.model().overhead_ns);
  }
  // Levels' messages may meet on a link.
  return std::max(total, latency + half * p.trees_ns_per_byte(false));
}

namespace {

// A rank with two children in one tree is a leaf of the other, so it sends and receives four halves of each chunk,
// in eight steps.
Cost double_binary_tree_all_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Paths p(v, m);
  const double bytes = m.bytes(double(c.count)), half = bytes / 2;
  const double known = p.trees_ns_per_byte(false),
               link = known > 0 ? known : 2 * p.trees(v.all.size / 2, false).shared_ns_per_byte;
  const Cost one = double_binary_tree_all_reduce_cost(v.all.size, bytes, p),
             block = double_binary_tree_all_reduce_cost(v.all.size, bytes * double(s.lanes), p);
  const Cost handling = 4 * m.exchange_gap_ns(), busiest = std::max({half * link, m.combine(bytes), handling});
  const Cost handled = one + double(s.lanes - 1) * handling;
  return after_in_step(meeting(one, busiest, chunks_in_flight(s, v.all.size == 2 ? 4 : 8)), one,
                       std::max(block, handled), s);
}

}  // namespace

constexpr Algorithm allreduce_double_binary_tree = {
    .name = "double_binary_tree",
    .kind = Collective::allreduce,
    .source = "Sanders, Speck, Traeff, Parallel Computing 35 (2009), sections 2 and 3",
    .steps = "at most 5 floor(log2 n) + 2",
    .bytes = "at most 2 V",
    .make = all_reduce<double_binary_tree_all_reduce>,
    .cost = vector_cost<double_binary_tree_all_reduce_cost>,
    .interval = double_binary_tree_all_reduce_interval,
};

}  // namespace gccl
