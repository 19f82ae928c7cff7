// Linear scatter: the root sends every rank its block.
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule linear_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region out = output_of(c, v, mine);
  if (r != c.root) {
    co_yield recv(c.root, out);
    co_return;
  }
  const Blocks in = input_blocks(c, v, mine);
  for (Rank s = 1; s < n; ++s) {
    const Rank to = v.all[v.all.ahead(s)];
    co_yield send(to, in[to]);
  }
  co_yield copy(in[r], out);
}

Cost linear_scatter_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count));
  return std::max(fan_out(v, m, block), m.copy(c.in_place ? 0 : block));
}

}  // namespace

constexpr Algorithm scatter_linear = {
    .name = "linear",
    .kind = Collective::scatter,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = linear_scatter,
    .cost = linear_scatter_cost,
};

}  // namespace gccl
