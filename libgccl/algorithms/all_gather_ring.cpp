#include "libgccl/algorithms/all_gather_ring.hpp"

namespace gccl {

Schedule ring_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = slice(input_of(c, n, r), mine);
  const Blocks out = slice(output_of(c, n, r), n, mine);
  const Rank next = v.all[std::int64_t(r) + 1], before = v.all[std::int64_t(r) - 1];
  for (Rank s = 0; s + 1 < n; ++s) {
    co_yield send(next, s == 0 ? in : out[v.all[std::int64_t(r) - s]]);
    co_yield recv(before, out[v.all[std::int64_t(r) - s - 1]]);
    if (s == 0) co_yield copy(in, out[r]);
  }
  if (n == 1) co_yield copy(in, out[0]);
}

Cost ring_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count));
  return std::max(m.ring(v, v.all.size - 1, block, 0), m.copy(c.in_place ? 0 : block));
}

}  // namespace gccl
