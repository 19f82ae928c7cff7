// Linear gather: every rank sends its block to the root. Bandwidth-optimal, and latency-optimal where messages to one
// rank overlap.
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule linear_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  if (r != c.root) {
    co_yield send(c.root, in);
    co_return;
  }
  const Blocks out = output_blocks(c, v, mine);
  for (Rank s = 1; s < n; ++s) {
    const Rank from = v.all[v.all.ahead(s)];
    co_yield recv(from, out[from]);
  }
  co_yield copy(in, out[r]);
}

Cost linear_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count));
  return std::max(fan_in(v, m, block), v.channels * m.own_copy(c, block));
}

}  // namespace

constexpr Algorithm gather_linear = {
    .name = "linear",
    .kind = Collective::gather,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "b",
    .make = linear_gather,
    .cost = linear_gather_cost,
    .at_once = true,
};

}  // namespace gccl
