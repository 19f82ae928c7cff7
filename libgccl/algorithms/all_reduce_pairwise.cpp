#include "libgccl/algorithms/all_reduce_pairwise.hpp"

#include "libgccl/algorithms/reduce_scatter_pairwise.hpp"

namespace gccl {

Schedule pairwise_all_reduce(Group g, Region in, Region out) {
  co_yield pairwise_reduce_scatter_over(g, in, out);
  co_yield pairwise_all_gather_over(g, out);
}

}  // namespace gccl
