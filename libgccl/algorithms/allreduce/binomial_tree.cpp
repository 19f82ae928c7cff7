#include "libgccl/algorithms/allreduce/binomial_tree.hpp"

#include "libgccl/algorithms/broadcast/binomial.hpp"
#include "libgccl/algorithms/reduce/binomial.hpp"

namespace gccl {

Schedule binomial_tree_all_reduce(Group g, Region in, Region out) {
  co_yield binomial_reduce_to(g, 0, in, out);
  co_yield binomial_broadcast_from(g, 0, out, out);
}

Cost binomial_tree_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  return binomial_reduce_to_cost(n, bytes, p) + binomial_broadcast_from_cost(n, bytes, p);
}

}  // namespace gccl
