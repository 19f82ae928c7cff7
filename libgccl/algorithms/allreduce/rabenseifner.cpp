// Rabenseifner's all-reduce: recursive halving reduce-scatter, then recursive doubling all-gather. The largest
// exchanges are between neighbours when n is a power of two; other n use circulant rounds instead of a fold, of one
// message or two (halving.hpp).
#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/halving.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule near_reduce_scatter(const Group& g, Region in, Region out) {
  const Numbering near = Numbering::from(g).near_first();
  return halving_reduce_scatter(near, in, out, out.part(near.rank, near.size));
}
Schedule near_all_gather(const Group& g, Region out) {
  return doubling_all_gather(Numbering::from(g).near_first(), out);
}

}  // namespace

Schedule rabenseifner_all_reduce(Group g, Region in, Region out) {
  // Made before they are yielded, as the parts of two_level.cpp are.
  Schedule part = near_reduce_scatter(g, in, out);
  co_yield std::move(part);
  part = near_all_gather(g, out);
  co_yield std::move(part);
}

Cost rabenseifner_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  return halving_all_reduce_cost(n, bytes / n, true, p);
}

constexpr Algorithm allreduce_rabenseifner = {
    .name = "rabenseifner",
    .kind = Collective::allreduce,
    .source = "Rabenseifner, \"Optimization of collective reduction operations\", ICCS 2004, section 3",
    .steps = "2 log2 n; other n: at most 4 ceil(log2 n) - 2",
    .bytes = "2 (n-1)/n V",
    .make = all_reduce<rabenseifner_all_reduce>,
    .cost = vector_cost<rabenseifner_all_reduce_cost>,
    .at_once = true,
    .rounds = true,
    .staggered = true,
};

}  // namespace gccl
