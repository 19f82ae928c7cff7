// Binomial tree all-reduce: a reduce to the first member, then a broadcast from it. n-1 messages in each half, the
// fewest.
#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/binomial.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {

Schedule binomial_tree_all_reduce(Group g, Region in, Region out) {
  co_yield binomial_reduce_to(g, 0, in, out);
  co_yield binomial_broadcast_from(g, 0, out, out);
}

Cost binomial_tree_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  return binomial_reduce_to_cost(n, bytes, p) + binomial_broadcast_from_cost(n, bytes, p);
}

constexpr Algorithm allreduce_binomial_tree = {
    .name = "binomial_tree",
    .kind = Collective::allreduce,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), sections 4.2 and 4.5",
    .steps = "2 ceil(log2 n)",
    .bytes = "ceil(log2 n) V",
    .make = all_reduce<binomial_tree_all_reduce>,
    .cost = vector_cost<binomial_tree_all_reduce_cost>,
};

}  // namespace gccl
