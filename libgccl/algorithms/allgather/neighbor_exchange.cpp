// Neighbour-exchange all-gather: neighbours swap pairs of blocks, to the left and to the right in turns. One block in
// the first step, two in the others, and each rank talks to two neighbours only. For odd n, where neighbours do not
// pair up, it is the ring.
#include <cmath>

#include "libgccl/algorithms/parts/run.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule neighbor_exchange_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  if (n % 2 == 1) {
    co_yield allgather_ring.make(c, v, mine);
    co_return;
  }
  const Region in = input_of(c, v, mine);
  const Blocks out = output_blocks(c, v, mine);
  // Ranks 2q and 2q+1 are pair q. An even rank meets its partner and the odd rank of the pair before it in turns, an
  // odd one its partner and the even rank of the pair after it; what came last goes on next.
  const std::int64_t pairs = n / 2, own = r / 2, away = r % 2 == 0 ? -1 : 1;
  const Rank partner = r ^ 1, neighbor = v.all[std::int64_t(r) + away];
  const auto pair = [out, n, pairs](std::int64_t q) { return Run{out, n, Count(2 * ((q + 2 * pairs) % pairs)), 2}; };
  co_yield send(partner, in);
  co_yield recv(partner, out[partner]);
  co_yield copy(in, out[r]);
  std::int64_t last = own;
  for (std::int64_t s = 1; s < pairs; ++s) {
    const std::int64_t coming = s % 2 == 1 ? own + away * ((s + 1) / 2) : own - away * (s / 2);
    const Rank peer = s % 2 == 1 ? neighbor : partner;
    co_yield exchange(peer, pair(last), peer, pair(coming));
    last = coming;
  }
}

// One channel takes turns. Several keep the ways to both neighbours busy where these are as fast, and are in step
// where they are not; so are they in the first two steps anyhow, of three blocks. What they have of latencies in which
// nothing passes is by the flow engine's times on 64 ranks of tpu-v4-4096.
Cost neighbor_exchange_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  if (v.all.size % 2 == 1) return allgather_ring.cost(c, v, m);
  const double block = m.bytes(double(c.count)), channels = v.channels;
  // Pairs (0, 1), (2, 3) ... and pairs (1, 2), (3, 4) ... take turns.
  const Hop &even = m.at(v, 1), &odd = m.all.known() ? *m.all.odd : m.shift(v, 1);
  const bool alike = std::abs(even.beta_ns_per_byte - odd.beta_ns_per_byte) <= 0.01 * odd.beta_ns_per_byte;
  const Cost both_ways = alike && m.all.known() ? block * (v.all.size - 1) / 2 * *m.all.neighbors_ns_per_byte : 0;
  if (m.links_alone && both_ways > 0) return both_ways;
  const unsigned rest = v.all.size / 2 - 1;
  const auto in_turns = [&](double bytes) {
    const Cost first = std::max(even(bytes), m.own_copy(c, bytes)), inside = even(2 * bytes), across = odd(2 * bytes);
    // Of nodes with more than two ranks only the last and the first meet ranks of other nodes. Their partners are
    // faster: what they send has come when the slow message has, after which a rank starts two messages in a row. What
    // a slow message brought last goes on to the partner.
    if (v.nodes > 1 && v.fullest > 2 && rest > 0)
      return first + std::max(rest * inside, rest / 2 * (across + m.exchange_gap_ns()) + (rest % 2 ? across : inside));
    return first + rest / 2 * (inside + across) + rest % 2 * across;
  };
  const Cost one = in_turns(block);
  if (channels == 1) return one;
  const Cost latency = in_turns(0);
  const double blocks = v.all.size - 1.0, in_step = std::min(3.0, blocks);
  const Cost begins = in_step * std::max(block * odd.beta_ns_per_byte, both_ways / blocks);
  const Cost waits = std::max(even(0), 1.6 / channels * latency);  // nothing hides the first message's
  return both_ways > 0 ? std::max(one, channels * (begins + (1 - in_step / blocks) * both_ways) + waits)
                       : one + (channels - 1) * (one - latency);
}

// Of each chunk, as many messages as there are blocks to receive.
Cost neighbor_exchange_slices(const View& v, const CostModel& m, const Slicing& s) {
  return double(s.shares) * (double(v.all.size) - 1) * m.exchange_gap_ns();
}

}  // namespace

constexpr Algorithm allgather_neighbor_exchange = {
    .name = "neighbor_exchange",
    .kind = Collective::allgather,
    .source = "Chen, Zhang, Zhang, Yuan, \"Performance evaluation of allgather algorithms\", HPC Asia 2005",
    .steps = "n/2; odd n: n-1",
    .bytes = "(n-1) b",
    .make = neighbor_exchange_all_gather,
    .cost = neighbor_exchange_all_gather_cost,
    .at_once = true,
    .rounds = true,
    .slices = neighbor_exchange_slices,
};

}  // namespace gccl
