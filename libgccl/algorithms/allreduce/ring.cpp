#include "libgccl/algorithms/allreduce/ring.hpp"

#include "libgccl/algorithms/parts/ring.hpp"

namespace gccl {

Schedule ring_all_reduce(Group g, Region in, Region out) {
  co_yield ring_reduce_scatter(g, in, out);
  co_yield ring_all_gather(g, out);
}

Cost ring_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  const double part = bytes / n;
  return p.ring(2.0 * (n - 1), part, (n - 1) * p.model().combine(part));
}

}  // namespace gccl
