#include "libgccl/algorithms/allreduce/recursive_doubling.hpp"

#include "libgccl/algorithms/parts/folded.hpp"

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
  Cost total = fold_cost(n, bytes, p);
  for (Rank d = 1; d < std::bit_floor(n); d *= 2) total += p.folded(n, d)(bytes) + p.model().combine(bytes);
  return total;
}

}  // namespace gccl
