#include "libgccl/algorithms/reduce_scatter_ring.hpp"

#include "libgccl/algorithms/paths.hpp"

namespace gccl {
namespace {

Cost over(Rank n, double block, const Paths& p) { return p.ring(n - 1, block, (n - 1) * p.model().combine(block)); }

}  // namespace

Schedule ring_reduce_scatter_blocks(Call c, View v, Share mine) {
  const Group g = v.all;
  const Rank n = g.size, next = g[std::int64_t(g.rank) + 1], before = g[std::int64_t(g.rank) - 1];
  const Blocks in = slice(input_of(c, n, g.rank), n, mine);
  const Region out = slice(output_of(c, n, g.rank), mine);
  if (n == 1) co_yield copy(in[0], out);
  // One sum is sent while the next one is received: two places in turns.
  const Blocks sums{Buffer::scratch, 0, in.count, in.count};
  for (Rank s = 1; s < n; ++s) {
    const Count give = Count(g.wrap(std::int64_t(g.rank) - s)), take = Count(g.wrap(std::int64_t(g.rank) - s - 1));
    co_yield send(next, s == 1 ? in[give] : sums[s % 2]);
    co_yield recv_reduce(before, in[take], s + 1 == n ? out : sums[(s + 1) % 2]);
  }
}

Count ring_reduce_scatter_blocks_scratch(const Call& c, const View& v, Share mine) {
  const Count n = v.all.size;
  return n > 2 ? std::min<Count>(n - 2, 2) * slice(input_of(c, Rank(n), v.all.rank), n, mine).count : 0;
}

Cost ring_reduce_scatter_blocks_cost(const Call& c, const View& v, const CostModel& m) {
  return vector_cost<over>(c, v, m);
}

}  // namespace gccl
