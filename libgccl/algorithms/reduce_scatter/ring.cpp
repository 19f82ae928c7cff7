// Ring reduce-scatter: every block's sum travels once around the ring and ends at its rank. Bandwidth-optimal. Scratch:
// two blocks of the largest size.
#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

// A place for the sum of any block's slice.
Count place(const Call& c, Rank n, Share mine) { return slice({Buffer::none, 0, largest_block(c, n)}, mine).count; }

Cost reduce_scatter_ring_over(Rank n, double block, const Paths& p) {
  return p.ring(n - 1, block, (n - 1) * p.model().combine(block));
}

Schedule ring_reduce_scatter_blocks(Call c, View v, Share mine) {
  const Group g = v.all;
  const Rank n = g.size, next = g[g.ahead(1)], before = g[g.behind(1)];
  Displacement in = Displacement::sent(c, mine, g.rank, input_of(c, n, g.rank));
  const Region out = slice(output_of(c, n, g.rank), mine);
  if (n == 1) co_yield copy(in[0], out);
  // One sum is sent while the next one is received: two places in turns.
  const Count apart = place(c, n, mine);
  Region have = in[before];
  for (Rank s = 1; s < n; ++s) {
    co_yield send(next, have);
    const Region add = in[g[g.behind(s + 1)]];
    have = s + 1 == n ? out : Region{Buffer::scratch, (s + 1) % 2 * apart, add.count};
    co_yield recv_reduce(before, add, have);
  }
}

Count ring_reduce_scatter_blocks_scratch(const Call& c, const View& v, Share mine) {
  const Count n = v.all.size;
  return n > 2 ? std::min<Count>(n - 2, 2) * place(c, Rank(n), mine) : 0;
}

}  // namespace

constexpr Algorithm reduce_scatter_ring = {
    .name = "ring",
    .kind = Collective::reduce_scatter,
    .source = "Patarasuk, Yuan, JPDC 69 (2009), section 3",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = ring_reduce_scatter_blocks,
    .scratch = ring_reduce_scatter_blocks_scratch,
    .cost = vector_cost<reduce_scatter_ring_over>,
};
constexpr Algorithm reduce_scatterv_ring = reduce_scatter_ring.of(Collective::reduce_scatterv);

}  // namespace gccl
