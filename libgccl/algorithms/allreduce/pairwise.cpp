#include "libgccl/algorithms/allreduce/pairwise.hpp"

#include "libgccl/algorithms/reduce_scatter/pairwise.hpp"

namespace gccl {

Schedule pairwise_all_reduce(Call c, View v, Share mine) {
  const Region in = slice(input_of(c, v.all.size, v.all.rank), mine);
  const Region out = slice(output_of(c, v.all.size, v.all.rank), mine);
  co_yield pairwise_reduce_scatter_over(v.all, Turns(v), in, out);
  co_yield pairwise_all_gather_over(v.all, Turns(v), out);
}

}  // namespace gccl
