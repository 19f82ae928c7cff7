#include "libgccl/algorithms/allreduce/rabenseifner.hpp"

#include "libgccl/algorithms/parts/halving.hpp"

namespace gccl {

Schedule rabenseifner_all_reduce(Group g, Region in, Region out) {
  const Numbering near = Numbering::near_first(g);
  co_yield halving_reduce_scatter(near, in, out, out.part(near.rank, near.size));
  co_yield doubling_all_gather(near, out);
}

Cost rabenseifner_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  return halving_reduce_scatter_cost(n, bytes / n, true, p) + doubling_all_gather_cost(n, bytes / n, true, p);
}

}  // namespace gccl
