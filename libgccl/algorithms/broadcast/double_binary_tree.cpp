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

// When the last of so many channels' messages has arrived that leave `gap_ns` after each other, the last one at
// `begin`. They share the hop fairly, so all arrive late.
Cost arrive_together(Cost begin, const Hop& hop, double bytes, double channels, Cost gap_ns) {
  const Cost alone = bytes * hop.beta_ns_per_byte, first = begin - (channels - 1) * gap_ns;
  return hop.alpha_ns + std::max(begin + alone, first + channels * std::max(alone, gap_ns));
}

// Position 0 feeds one root after the other, and each level's right child gets its half after the left one. Channels of
// a chunk each come to a level together, which passes both halves of all of them before the last right child goes on.
Cost broadcast_double_binary_tree_over(Rank n, double bytes, const Paths& p) {
  const double half = bytes / 2, channels = p.channels();
  const Rank others = n - 1;
  const Cost overhead = p.model().overhead_ns, gap = 2 * overhead;
  Cost latency = 0, total = (channels - 1) * gap;
  const auto pass = [&](const TreeLevel& level, bool both) {
    latency += level.one.alpha_ns;
    if (channels <= 1)
      total += both ? level.later(half, overhead) : level.one(half);
    else
      total = arrive_together(total, {level.one.alpha_ns, both ? level.shared_ns_per_byte : level.one.beta_ns_per_byte},
                              half, channels, gap);
  };
  pass(p.feed(n), true);
  for (Count d = 1; 2 * d <= others; d *= 2) pass(p.trees(d, true), 2 * d < others);
  // Levels' messages may meet on a link.
  return std::max(total, latency + channels * half * p.trees_ns_per_byte(true));
}

Schedule double_binary_tree_broadcast(Call c, View v, Share mine) {
  const Numbering u = Numbering::from(v, c.root);
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
  Cost way = p.feed(n).one(half);
  for (Count d = 1; 2 * d <= n - 1; d *= 2) way += p.trees(d, true).one(half);
  return way;
}

// The share of that way that a lane's next chunk waits for: a lane goes down one tree after the other, and the ranks'
// depths in the two differ. Fitted to the model engine's times of 8 and 64 ranks of dgx-h100-superpod-2048,
// gb200-nvl72-576 and alps-gh200-2048, with and without protocols.
constexpr double kOfWayDown = 1.0 / 6;

// How many times the first long messages of all channels, which share links fairly and so all come late, pass one as
// one message. By the flow engine's times of 6, 8 and 72 ranks of dgx-h100-superpod-2048 and gb200-nvl72-576.
constexpr double kInStep = 0.9;

// How much longer than a chunk's bytes take on a port that both trees' messages pass the next one comes: a lane's
// receive waits for its sends, and few lanes do so together. By the flow engine's times of 4 to 8 ranks of
// ethernet-cpu, dgx-h100-superpod-2048 and deepseek-v3-h800-2048, and of 3 to 17 nodes with a rank each of the second.
double in_turns(Rank n, double half, const Paths& p, const Slicing& s) {
  const TreeLevel feed = p.feed(n);
  if (feed.shared_ns_per_byte <= 1.5 * feed.one.beta_ns_per_byte) return 1;
  return s.lanes <= 2 ? 1.4 : s.lanes <= 4 && half > kTurnsAbove / 2 ? 1.3 : 1;
}

// What a byte of half a chunk keeps the busiest link busy for.
double busiest_ns_per_byte(Rank n, const Paths& p) {
  const double known = p.trees_ns_per_byte(true);
  return known > 0 ? known : std::max(p.feed(n).shared_ns_per_byte, n > 2 ? p.trees(1, true).shared_ns_per_byte : 0);
}

// Where messages wait for their receives, a rank with children posts the next one when the one before has arrived, over
// links that both trees' messages are on.
Cost cycle(Rank n, double half, const Paths& p) {
  if (!p.model().met(half) || n <= 3) return 0;
  Cost alpha = p.feed(n).one.alpha_ns;
  for (Count d = 2; 2 * d <= n - 1; d *= 2) alpha = std::max(alpha, p.trees(d, true).one.alpha_ns);
  return alpha + half * busiest_ns_per_byte(n, p);
}

Cost on_one_node(Rank n, double half, const Paths& p, const Slicing& s) {
  const Cost link = half * busiest_ns_per_byte(n, p);
  const Cost each = std::max({link * in_turns(n, half, p, s), 2 * p.model().exchange_gap_ns(),
                              std::max(cycle(n, half, p), kOfWayDown * way_down(n, half, p)) / double(s.lanes)});
  if (half <= kTurnsAbove / 2) return each;
  return each + kInStep * double(s.lanes - 1) * link / double(std::max<Count>(s.shares, 2) - 1);
}

// The share of a window's chunks that a rank has on their way while a chunk passes the trees. Fitted to the flow
// engine's times of 10 to 80 ranks of five clusters, windows of 2 to 32, 256 KiB and 4 MiB in 64 chunks.
constexpr double kOfWindow = 0.75;

// The root sends both halves of each chunk, and so does a rank with children. On several nodes the first chunks of all
// channels begin at once, and ranks that one tree reaches early and the other late go on no faster than their windows
// let the early half be ahead of the late one.
Cost double_binary_tree_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Rank n = std::max<Rank>(v.all.size, 2);
  const double bytes = m.bytes(double(c.count)), half = bytes / 2, lanes = double(s.lanes);
  const Paths one(v, m);
  if (v.nodes == 1) return std::max(on_one_node(n, half, one, s), m.own_copy(c, bytes));
  const View all = with_channels(v, s.lanes);
  const Cost chunk = broadcast_double_binary_tree_over(n, bytes, one);
  const Cost ahead = (chunk - one.feed(n).one(half)) / (kOfWindow * double(s.window));
  const double turns = v.fullest > 1 ? 1 : in_turns(n, half, one, s);
  const Cost each = std::max({half * busiest_ns_per_byte(n, one) * turns, 2 * m.exchange_gap_ns(),
                              std::max(ahead, cycle(n, half, one)) / lanes});
  return std::max(after_in_step(each, chunk, broadcast_double_binary_tree_over(n, bytes, Paths(all, m)), s),
                  m.own_copy(c, bytes));
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
    .at_once = true,
    .interval = double_binary_tree_broadcast_interval,
};

}  // namespace gccl
