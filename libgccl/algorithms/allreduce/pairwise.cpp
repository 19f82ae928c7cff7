// Pairwise all-reduce: every rank gets its part of each other rank's vector directly, sums the parts, and sends the sum
// to each other rank directly. Only the two halves depend on each other: bandwidth-optimal with two latencies where
// many messages can be in flight.
#include "libgccl/algorithms/parts/pairwise.hpp"

#include "libgccl/algorithms/parts/few_ranks.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule pairwise_all_reduce(Call c, View v, Share mine) {
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  co_yield pairwise_reduce_scatter_over(v.all, Turns(v), in, out);
  co_yield pairwise_all_gather_over(v.all, Turns(v), out);
}

}  // namespace

constexpr Algorithm allreduce_pairwise = {
    .name = "pairwise",
    .kind = Collective::allreduce,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4, for the first half",
    .steps = "2 (n-1)",
    .bytes = "2 (n-1)/n V",
    .make = pairwise_all_reduce,
    .fits = crossbar_ranks,
    .limit = kCrossbarRanksLimit,
    .cost = vector_cost<pairwise_cost>,
    .at_once = true,
};

}  // namespace gccl
