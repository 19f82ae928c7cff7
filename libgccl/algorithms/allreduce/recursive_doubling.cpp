// Recursive doubling all-reduce: whole vectors are exchanged with the ranks 1, 2, 4, ... away. The fewest steps, for
// small vectors. Ranks beyond a power of two are folded (folded.hpp).
#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/folded.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/bunch.hpp"

namespace gccl {
namespace {

Schedule doubling(Numbering g, Region in, Region out) {
  if (g.size == 1) co_yield copy(in, out);
  for (Rank distance = 1; distance < g.size; distance *= 2) {
    const Region mine = distance == 1 ? in : out;
    co_yield send(g[g.rank ^ distance], mine);
    co_yield recv_reduce(g[g.rank ^ distance], mine, out);
  }
}

}  // namespace

Schedule recursive_doubling_all_reduce(Group g, Region in, Region out) {
  return folded_all_reduce(g, in, out, doubling);
}

Cost recursive_doubling_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  Bunch bunch(p.channels(), p.model().exchange_gap_ns());
  Cost total = bunch.begin() + fold_cost(n, double(p.channels()) * bytes, p);
  for (Rank d = 1; d < std::bit_floor(n); d *= 2)
    total = bunch.combine(bunch.pass(total, p.folded(n, d), bytes), p.model().combine(bytes));
  return total;
}

constexpr Algorithm allreduce_recursive_doubling = {
    .name = "recursive_doubling",
    .kind = Collective::allreduce,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.5",
    .steps = "log2 n; other n: floor(log2 n) + 2",
    .bytes = "log2 n V; other n: (floor(log2 n) + 1) V",
    .make = all_reduce<recursive_doubling_all_reduce>,
    .cost = vector_cost<recursive_doubling_all_reduce_cost>,
    .at_once = true,
    .rounds = true,
};

}  // namespace gccl
