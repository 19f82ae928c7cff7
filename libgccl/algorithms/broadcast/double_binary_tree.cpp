// Double binary tree broadcast: the root hands half of the vector to each of two binary trees of the other ranks; a
// rank has children in only one of them. At most 2 (1 + floor(log2 (n-1))) messages deep; the root sends one vector,
// other ranks half a vector to each child.
#include "libgccl/algorithms/parts/binary_tree.hpp"
#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

// Places are positions counted from the root; the trees' roots are fed by position 0, which is in neither.
Schedule down(Numbering u, TreePlace t, Region out) {
  co_yield recv(u[t.parent], out);
  if (t.left) co_yield send(u[t.left], out);
  if (t.right) co_yield send(u[t.right], out);
}

Rank root_of(TreePlace (*tree)(Rank, Rank), Rank size) {
  Rank place = 1;
  for (Rank up = tree(place, size).parent; up; up = tree(place, size).parent) place = up;
  return place;
}

// Position 0 feeds one root after the other, and each level's right child gets its half after the left one.
Cost broadcast_double_binary_tree_over(Rank n, double bytes, const Paths& p) {
  const double half = bytes / 2;
  const Rank others = n - 1;
  const Hop& feed = p.binomial(std::bit_floor(others));
  Cost latency = feed.alpha_ns, total = feed(half) + std::max(half * feed.beta_ns_per_byte, p.model().overhead_ns);
  for (Count d = 1; 2 * d <= others; d *= 2) {
    const TreeLevel level = p.trees(d, true);
    latency += level.one.alpha_ns;
    total += 2 * d == others ? level.one(half) : level.later(half, p.model().overhead_ns);
  }
  // Levels' messages may meet on a link.
  return std::max(total, latency + half * p.trees_ns_per_byte(true));
}

Schedule double_binary_tree_broadcast(Call c, View v, Share mine) {
  const Numbering u = Numbering::from(v.all, c.root);
  const Rank others = v.all.size - 1;
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  if (u.rank == 0) {
    if (others) co_yield send(u[root_of(first_tree, others)], in.part(0, 2));
    if (others) co_yield send(u[root_of(second_tree, others)], in.part(1, 2));
    co_yield copy(in, out);
    co_return;
  }
  co_yield down(u, first_tree(u.rank, others), out.part(0, 2));
  co_yield down(u, second_tree(u.rank, others), out.part(1, 2));
}

// The cost of half a chunk's way from the root to the last rank of a tree.
Cost way_down(Rank n, double half, const Paths& p) {
  Cost way = p.binomial(std::bit_floor(n - 1))(half);
  for (Count d = 1; 2 * d <= n - 1; d *= 2) way += p.trees(d, true).one(half);
  return way;
}

// The share of that way that a lane's next chunk waits for: a lane goes down one tree after the other, and the ranks'
// depths in the two differ. Fitted to the model engine's times of 8 and 64 ranks of dgx-h100-superpod-2048,
// gb200-nvl72-576 and alps-gh200-2048, with and without protocols; on several nodes to the flow engine's of 48 ranks.
constexpr double kOfWayDown = 1.0 / 6, kOfWayDownNodes = 1.0 / 8;

// How many times the first long messages of all channels, which share links fairly and so all come late, pass one as
// one message, on one node and on several. By the flow engine's times of 6, 8, 24, 48 and 72 ranks of
// dgx-h100-superpod-2048 and gb200-nvl72-576.
constexpr double kInStep = 0.9, kInStepNodes = 0.4;

// How much longer than a chunk's bytes take on a port of a node's only tree the next one comes: a lane's receive waits
// for its sends, and few lanes do so together. By the flow engine's times of 4 to 8 ranks of ethernet-cpu,
// dgx-h100-superpod-2048 and deepseek-v3-h800-2048.
double in_turns(const Slicing& s, double half) {
  return s.lanes <= 2 ? 1.4 : s.lanes <= 4 && half > kTurnsAbove / 2 ? 1.3 : 1;
}

// The root sends both halves of each chunk, and so does a rank with children.
Cost double_binary_tree_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Paths p(v, m);
  const Rank n = std::max<Rank>(v.all.size, 2);
  const double bytes = m.bytes(double(c.count)), half = bytes / 2;
  const double shared = n > 2 ? p.trees(1, true).shared_ns_per_byte : 0;
  const Cost link = std::max(
      {bytes * p.binomial(std::bit_floor(n - 1)).beta_ns_per_byte, half * shared, half * p.trees_ns_per_byte(true)});
  const bool one_node = v.nodes == 1;
  const Cost waits = (one_node ? kOfWayDown : kOfWayDownNodes) * way_down(n, half, p) / double(s.lanes);
  const Cost each = std::max({link * (one_node ? in_turns(s, half) : 1), 2 * m.exchange_gap_ns(), waits});
  if (half <= kTurnsAbove / 2) return each;
  return each +
         (one_node ? kInStep : kInStepNodes) * double(s.lanes - 1) * link / double(std::max<Count>(s.shares, 2) - 1);
}

}  // namespace

constexpr Algorithm broadcast_double_binary_tree = {
    .name = "double_binary_tree",
    .kind = Collective::broadcast,
    .source = "Sanders, Speck, Traeff, Parallel Computing 35 (2009), section 3",
    .steps = "at most 3 floor(log2 n) + 4",
    .bytes = "V",
    .make = double_binary_tree_broadcast,
    .cost = broadcast_cost<broadcast_double_binary_tree_over>,
    .interval = double_binary_tree_broadcast_interval,
};

}  // namespace gccl
