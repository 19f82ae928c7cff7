// PAT all-gather: parallel aggregated trees. Every block goes down a binomial tree rooted at its rank, the same tree
// for all ranks up to a shift, far distances first: so little crosses the far links and most of the data moves between
// near ranks. Messages of a level are aggregated as far as a bounded buffer allows: a level of distance d carries
// ceil((n-d) / 2d) blocks, in one message per kPatElements elements, or in one per block where a block is larger than
// half of that; the steps stated below are those of small blocks. Any number of ranks. Scratch: at most 2 kPatElements
// elements, and never more than 2 ceil(n/2) blocks; none for large blocks.
#include <bit>

#include "libgccl/algorithms/parts/run.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/bunch.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

constexpr Count kPatElements = 65536;

// Blocks in one message, at least 1.
Count aggregated(Rank n, Count block) {
  const Count most = (Count(n) + 1) / 2;
  return block ? std::clamp<Count>(kPatElements / block, 1, most) : most;
}

// Blocks that a rank passes on over distance d: it holds those of ranks r, r - 2d, r - 4d, ... above r - n, and the
// receiver at r + d lacks them while it is not yet past their own rank again.
Count level_blocks(Count n, Count d) { return (n - d + 2 * d - 1) / (2 * d); }

Schedule pat_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  const Blocks out = output_blocks(c, v, mine);
  const Count batch = aggregated(n, out.count);
  const Blocks give = packed(out), take = packed(out, batch * out.count);
  const auto back = [v, r](Count distance) { return v.all[std::int64_t(r) - std::int64_t(distance)]; };
  const auto held = [in, out, back](Count distance) { return distance == 0 ? in : out[back(distance)]; };

  for (Count d = std::bit_ceil(n) / 2; n > 1 && d >= 1; d /= 2) {
    const Rank to = v.all[std::int64_t(r + d)], from = back(d);
    const Count level = level_blocks(n, d);
    for (Count j = 0; j < level; j += batch) {
      const Count length = std::min(batch, level - j);
      const bool direct = length == 1;
      for (Count i = 0; i < length && !direct; ++i) co_yield copy(held(2 * d * (j + i)), give[i]);
      co_yield send(to, direct ? held(2 * d * j) : give.run(0, length));
      co_yield recv(from, direct ? out[back(d + 2 * d * j)] : take.run(0, length));
      for (Count i = 0; i < length && !direct; ++i) co_yield copy(take[i], out[back(d + 2 * d * (j + i))]);
    }
  }
  co_yield copy(in, out[r]);
}

Count pat_all_gather_scratch(const Call& c, const View& v, Share mine) {
  const Rank n = v.all.size;
  const Count block = output_blocks(c, v, mine).count, batch = aggregated(n, block);
  return batch == 1 ? 0 : 2 * batch * block;
}

Cost pat_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const Rank n = v.all.size;
  const double block = m.bytes(double(c.count));
  const Count batch = aggregated(n, c.count);
  if (n == 1) return m.own_copy(c, block);
  Bunch bunch(v.channels, m.exchange_gap_ns());
  const double channels = v.channels;
  Cost t = bunch.begin(), last = 0, left = bunch.begin();
  Cost carried = 0;  // by the levels' busiest links, which are mostly one
  for (Count d = std::bit_ceil(n) / 2; d >= 1; d /= 2) {
    const Hop& hop = batch == 1 ? m.shift(v, d) : m.round(v, d, true);
    const Count level = level_blocks(n, d);
    carried += double(level) * channels * block * hop.beta_ns_per_byte;
    if (batch == 1) {
      // Block by block the levels run into each other: a block goes on while others come in. Only the second level is
      // too short to hide the first one's way.
      const Cost way = hop.alpha_ns + channels * block * hop.beta_ns_per_byte;  // of a block of each channel
      const Cost gap =
          std::max({channels * m.exchange_gap_ns(), channels * block * hop.beta_ns_per_byte, way * 2 / kStepsInFlight});
      if (d == 1) t += n < 4 ? 0 : std::max(0.0, way - 2 * gap);
      t += double(level) * gap;
      last = way - gap;
      continue;
    }
    const auto trip = [&](Count blocks) {
      const double bytes = double(blocks) * block;
      const Cost began = t;
      t = bunch.combine(bunch.pass(t, hop, bytes), blocks > 1 ? 2 * m.copy(bytes) : 0);
      return t - began;
    };
    if (level == 1) {  // of the first levels, which send their own block and wait for nobody's
      t = std::max(t, bunch.pass(left, hop, block));
      left += channels * std::max(m.exchange_gap_ns(), block * hop.beta_ns_per_byte);
      continue;
    }
    // Messages of one length soon take alike.
    const Count trips = level / batch, followed = std::min<Count>(trips, 3);
    Cost each = 0;
    for (Count i = 0; i < followed; ++i) each = trip(batch);
    t += double(trips - followed) * each;
    if (level % batch > 0) trip(level % batch);
  }
  return std::max({t + last, carried, channels * m.own_copy(c, block)});
}

}  // namespace

constexpr Algorithm allgather_pat = {
    .name = "pat",
    .kind = Collective::allgather,
    .source =
        "Jeaugey, \"PAT: a new algorithm for all-gather and reduce-scatter operations at scale\", arXiv:2506.20252 "
        "(2025)",
    .steps = "ceil(log2 n)",
    .bytes = "(n-1) b",
    .make = pat_all_gather,
    .scratch = pat_all_gather_scratch,
    .cost = pat_all_gather_cost,
    .at_once = true,
    .rounds = true,
};

}  // namespace gccl
