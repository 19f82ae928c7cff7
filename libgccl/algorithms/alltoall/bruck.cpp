// Bruck's all-to-all: in step k every block whose way has bit k set moves on by 2^k ranks, all in one message: at most
// floor(n/2) blocks. Latency-optimal, at log2(n)/2 times the bytes of pairwise and two copies of each block per step.
// Any n. Scratch: n + 2 floor(n/2) blocks.
#include <algorithm>

#include "libgccl/algorithms/parts/run.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/bunch.hpp"

namespace gccl {
namespace {

// How many of 0 .. n-1 have the bit of value d set.
Count with_bit(Count n, Count d) { return n / (2 * d) * d + std::max(n % (2 * d), d) - d; }

Schedule bruck_all_to_all(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Blocks in = input_blocks(c, v, mine), out = output_blocks(c, v, mine);
  const Blocks work = packed(in);  // block j has j ranks to go in all
  const Blocks give = packed(in, n * in.count), take = packed(in, (n + n / 2) * in.count);
  if (n > 1) co_yield pack({in, n, (r + 1) % n, n - 1}, work.run(1, n - 1));
  for (Count d = 1; d < n; d *= 2) {
    const Count length = with_bit(n, d);
    Count at = 0;
    for (Count j = d; j < n; at += d, j += 2 * d)
      co_yield copy(work.run(j, std::min(d, n - j)), give.run(at, std::min(d, n - j)));
    co_yield send(v.all[std::int64_t(r + d)], give.run(0, length));
    co_yield recv(v.all[std::int64_t(r) - std::int64_t(d)], take.run(0, length));
    // Those without a higher bit are at their end, the others wait for their next step.
    for (Count j = d; j < std::min<Count>(2 * d, n); ++j)
      co_yield copy(take[j - d], out[v.all[std::int64_t(r) - std::int64_t(j)]]);
    at = d;
    for (Count j = 3 * d; j < n; at += d, j += 2 * d)
      co_yield copy(take.run(at, std::min(d, n - j)), work.run(j, std::min(d, n - j)));
  }
  co_yield copy(in[r], out[r]);
}

Count bruck_all_to_all_scratch(const Call& c, const View& v, Share mine) {
  const Count n = v.all.size;
  return n == 1 ? 0 : (n + n / 2 * 2) * input_blocks(c, v, mine).count;
}

Cost bruck_all_to_all_cost(const Call& c, const View& v, const CostModel& m) {
  const Count n = v.all.size;
  const double block = m.bytes(double(c.count));
  Bunch bunch(v.channels, m.exchange_gap_ns());
  Cost t = bunch.begin() + double(v.channels) * m.copy(double(n - c.in_place) * block);
  Cost carried = 0;  // by the steps' busiest links, which are mostly one
  for (Count d = 1; d < n; d *= 2) {
    const double bytes = double(with_bit(n, d)) * block;
    const Hop& hop = m.round(v, d, true);
    t = bunch.combine(bunch.pass(t, hop, bytes), 2 * m.copy(bytes));
    carried += double(v.channels) * bytes * hop.beta_ns_per_byte;
  }
  return std::max(t, carried);
}

}  // namespace

constexpr Algorithm alltoall_bruck = {
    .name = "bruck",
    .kind = Collective::alltoall,
    .source = "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8 (1997), section 3 (index, radix 2)",
    .steps = "ceil(log2 n)",
    .bytes = "n/2 log2 n b; other n: at most floor(n/2) ceil(log2 n) b",
    .make = bruck_all_to_all,
    .scratch = bruck_all_to_all_scratch,
    .cost = bruck_all_to_all_cost,
    .at_once = true,
    .rounds = true,
};

}  // namespace gccl
