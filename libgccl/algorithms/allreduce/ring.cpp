// Ring all-reduce: a ring reduce-scatter, then a ring all-gather. Bandwidth-optimal.
#include "libgccl/algorithms/parts/ring.hpp"

#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {

Schedule ring_all_reduce(Group g, Region in, Region out) {
  co_yield ring_reduce_scatter(g, in, out);
  co_yield ring_all_gather(g, out);
}

Cost ring_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  const double part = bytes / n;
  return p.ring(2.0 * (n - 1), part, (n - 1) * p.model().combine(part));
}

constexpr Algorithm allreduce_ring = {
    .name = "ring",
    .kind = Collective::allreduce,
    .source = "Patarasuk, Yuan, JPDC 69 (2009), section 3",
    .steps = "2 (n-1)",
    .bytes = "2 (n-1)/n V",
    .make = all_reduce<ring_all_reduce>,
    .cost = vector_cost<ring_all_reduce_cost>,
};

}  // namespace gccl
