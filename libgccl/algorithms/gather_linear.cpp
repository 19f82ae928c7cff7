#include "libgccl/algorithms/gather_linear.hpp"

namespace gccl {

Schedule linear_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = slice(input_of(c, n, r), mine);
  if (r != c.root) {
    co_yield send(c.root, in);
    co_return;
  }
  const Blocks out = slice(output_of(c, n, r), n, mine);
  for (Rank s = 1; s < n; ++s) {
    const Rank from = v.all[std::int64_t(r) + s];
    co_yield recv(from, out[from]);
  }
  co_yield copy(in, out[r]);
}

Cost linear_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count)), far = v.nodes > 1 ? v.all.size - v.rails : 0;
  // All messages are on their way at once and queue for the root's port.
  const double near = v.all.size - 1 - far;
  const Cost queue = block * (far * m.net.beta_ns_per_byte + near * m.node.beta_ns_per_byte);
  const Cost alpha = far > 0 ? m.net.alpha_ns : near > 0 ? m.node.alpha_ns : 0;
  return std::max(alpha + queue, m.copy(c.in_place ? 0 : block));
}

}  // namespace gccl
