// Ring reduce-scatter: every block's sum travels once around the ring and ends at its rank. Bandwidth-optimal. Scratch:
// up to eight blocks of the largest size.
#include "libgccl/algorithms/parts/ring.hpp"

#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

// So that a sum that is long on its way to another node does not keep the next ones waiting; as many as NCCL's
// connections have slots (NCCL_STEPS).
constexpr Count kPlaces = 8;

// A place for the sum of any block's slice.
Count place(const Call& c, Rank n, Share mine) { return slice({Buffer::none, 0, largest_block(c, n)}, mine).count; }

Cost reduce_scatter_ring_over(Rank n, double block, const Paths& p) {
  return p.ring(n - 1, block, (n - 1) * p.model().combine(block));
}

Schedule ring_reduce_scatter_blocks(Call c, View v, Share mine) {
  const ChannelOrder order(v);
  const Ring ring = order;
  const Rank n = v.all.size, r = v.all.rank;
  Displacement in = Displacement::sent(c, mine, r, input_of(c, n, r));
  const Region out = output_of(c, v, mine);
  if (n == 1) co_yield copy(in[0], out);
  // Sums are sent while the next ones are received: places in turns.
  const Count apart = place(c, n, mine);
  Region have = in[ring.before];
  for (Rank s = 1; s < n; ++s) {
    co_yield send(ring.next, have);
    const Region add = in[order[order.behind(s + 1)]];
    have = s + 1 == n ? out : Region{Buffer::scratch, (s - 1) % kPlaces * apart, add.count};
    co_yield recv_reduce(ring.before, add, have);
  }
}

Count ring_reduce_scatter_blocks_scratch(const Call& c, const View& v, Share mine) {
  const Count n = v.all.size;
  return n > 2 ? std::min(n - 2, kPlaces) * place(c, Rank(n), mine) : 0;
}

Cost reduce_scatter_ring_in_step(const Call& c, const View& v, const CostModel& m) {
  if (!m.rings || v.all.size == 1) return 0;
  const double steps = v.all.size - 1, block = m.bytes(double(c.count));
  return m.ring_in_step(v, steps, block, steps * m.combine(block));
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
    .channels = true,
    .in_step = reduce_scatter_ring_in_step,
};
constexpr Algorithm reduce_scatterv_ring = reduce_scatter_ring.of(Collective::reduce_scatterv);

}  // namespace gccl
