// Tree barrier: signals rise through a binomial tree to rank 0 and come down again. 2 (n-1) signals in all, against n
// ceil(log2 n) of dissemination. Any n. Only share 0 has steps.
#include <bit>

#include "libgccl/algorithms/parts/subtree.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"

namespace gccl {
namespace {

Schedule tree_barrier(Call, View v, Share mine) {
  if (mine.index != 0) co_return;
  const Subtree tree = Subtree::of(v.all.size, 0, v.all.rank);
  for (Count d = 1; d < tree.size; d *= 2) co_yield await(tree.child(d).rank());
  if (tree.position != 0) {
    co_yield signal(tree.parent());
    co_yield await(tree.parent());
  }
  for (Count d = std::bit_ceil(tree.size) / 2; d >= 1; d /= 2) co_yield signal(tree.child(d).rank());
}

Cost tree_barrier_cost(const Call&, const View& v, const CostModel& m) {
  return binomial_up(v.all.size, {}, false, Paths(v, m)) + binomial_down(v.all.size, {}, Paths(v, m));
}

}  // namespace

constexpr Algorithm barrier_tree = {
    .name = "tree",
    .kind = Collective::barrier,
    .source = "Mellor-Crummey, Scott, ACM TOCS 9 (1991), section 3.4, with a binomial tree",
    .steps = "2 ceil(log2 n)",
    .bytes = "0",
    .make = tree_barrier,
    .cost = tree_barrier_cost,
};

}  // namespace gccl
