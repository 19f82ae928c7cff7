// Bruck's all-gather: recursive doubling for any number of ranks, over cyclic distances. One message per step also for
// slices: blocks collect in scratch in the order rank, rank+1, ..., and those of a step move to the output during the
// next. Scratch: n blocks.
#include <algorithm>

#include "libgccl/algorithms/parts/run.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/rounds.hpp"

namespace gccl {
namespace {

Schedule bruck_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  const Blocks out = output_blocks(c, v, mine);
  const Blocks work = packed(out);  // block i: that of rank r + i
  Count landed = 0, landed_length = 0;
  for (Count d = 1; d < n; d *= 2) {
    const Count length = std::min<Count>(d, n - d);
    co_yield send(v.all[std::int64_t(r) - std::int64_t(d)], d == 1 ? in : work.run(0, length));
    co_yield recv(v.all[std::int64_t(r) + std::int64_t(d)], work.run(d, length));
    if (d == 1) {
      co_yield copy(in, work[0]);
      co_yield copy(in, out[r]);
    }
    co_yield unpack(work.run(landed, landed_length), {out, n, v.all[std::int64_t(r + landed)], landed_length});
    landed = d;
    landed_length = length;
  }
  co_yield unpack(work.run(landed, landed_length), {out, n, v.all[std::int64_t(r + landed)], landed_length});
  if (n == 1) co_yield copy(in, out[0]);
}

Count bruck_all_gather_scratch(const Call& c, const View& v, Share mine) {
  return v.all.size * output_blocks(c, v, mine).count;
}

Cost bruck_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const Rank n = v.all.size;
  const double block = m.bytes(double(c.count));
  // Two timelines: the exchanges, and the copies of what they bring.
  Rounds exchanges(v.all.size, v.channels, m, false, v.nodes == 1);
  Cost copied = double(v.channels) * m.copy(block) * ((n > 1) + !c.in_place);
  Cost carried = 0;  // by the exchanges' busiest links, which are mostly one
  for (Rank d = 1; d < n; d *= 2) {
    const Rank length = std::min(d, n - d);
    const double bytes = double(length) * block;
    const Hop& hop = m.round(v, d);
    copied = std::max(copied, exchanges.add({d, length}, bytes, hop)) + double(v.channels) * m.copy(bytes);
    carried += double(v.channels) * bytes * hop.beta_ns_per_byte;
  }
  return std::max(copied, carried);
}

}  // namespace

constexpr Algorithm allgather_bruck = {
    .name = "bruck",
    .kind = Collective::allgather,
    .source = "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8 (1997), section 4 (concatenation)",
    .steps = "ceil(log2 n)",
    .bytes = "(n-1) b",
    .make = bruck_all_gather,
    .scratch = bruck_all_gather_scratch,
    .cost = bruck_all_gather_cost,
    .at_once = true,
    .rounds = true,
};

}  // namespace gccl
