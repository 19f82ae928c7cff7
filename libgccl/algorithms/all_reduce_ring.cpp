#include "libgccl/algorithms/all_reduce_ring.hpp"

#include "libgccl/algorithms/ring.hpp"

namespace gccl {

Schedule ring_all_reduce(Call c, View v, Share mine) {
  const Region in = slice(input_of(c, v.all.size, v.all.rank), mine);
  const Region out = slice(output_of(c, v.all.size, v.all.rank), mine);
  co_yield ring_reduce_scatter(v.all, in, out);
  co_yield ring_all_gather(v.all, out);
}

Cost ring_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double n = v.all.size, part = m.bytes(double(c.count) / n);
  return 2 * (n - 1) * m.widest(v)(part) + (n - 1) * m.combine(part);
}

}  // namespace gccl
