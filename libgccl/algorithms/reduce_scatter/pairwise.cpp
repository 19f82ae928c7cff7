// Pairwise reduce-scatter: every rank sends each other rank its part directly, in the order of turns.hpp. No step
// depends on an earlier one: for crossbars such as NVSwitch, where many messages can be in flight.
#include "libgccl/algorithms/parts/pairwise.hpp"

#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule pairwise_reduce_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  return pairwise_reduce_scatter_over(v.all, Turns(v), Displacement::sent(c, mine, r, input_of(c, n, r)),
                                      output_of(c, v, mine));
}

}  // namespace

constexpr Algorithm reduce_scatter_pairwise = {
    .name = "pairwise",
    .kind = Collective::reduce_scatter,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = pairwise_reduce_scatter,
    .cost = vector_cost<pairwise_reduce_scatter_cost>,
    .at_once = true,
};
constexpr Algorithm reduce_scatterv_pairwise = reduce_scatter_pairwise.of(Collective::reduce_scatterv);

}  // namespace gccl
