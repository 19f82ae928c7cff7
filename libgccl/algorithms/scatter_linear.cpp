#include "libgccl/algorithms/scatter_linear.hpp"

#include "libgccl/algorithms/pipelined.hpp"

namespace gccl {

Schedule linear_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region out = slice(output_of(c, n, r), mine);
  if (r != c.root) {
    co_yield recv(c.root, out);
    co_return;
  }
  const Blocks in = slice(input_of(c, n, r), n, mine);
  for (Rank s = 1; s < n; ++s) {
    const Rank to = v.all[std::int64_t(r) + s];
    co_yield send(to, in[to]);
  }
  co_yield copy(in[r], out);
}

Cost linear_scatter_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count)), far = v.nodes > 1 ? v.all.size - v.rails : 0;
  const Cost t =
      pipelined(far, m.net, block, m.overhead_ns, 1) + pipelined(v.all.size - 1 - far, m.node, block, m.overhead_ns, 1);
  return std::max(t, m.copy(c.in_place ? 0 : block));
}

}  // namespace gccl
