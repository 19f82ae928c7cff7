// Ring all-gather: every block travels once around the ring. Bandwidth-optimal.
#include "libgccl/algorithms/parts/ring.hpp"

#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule ring_all_gather_blocks(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  Displacement out = Displacement::received(c, mine, r, output_of(c, n, r));
  const Region own = out[r];
  const ChannelOrder order(v);
  const Ring ring = order;
  Region have = in;
  for (Rank s = 1; s < n; ++s) {
    co_yield send(ring.next, have);
    have = out[order[order.behind(s)]];
    co_yield recv(ring.before, have);
    if (s == 1) co_yield copy(in, own);
  }
  if (n == 1) co_yield copy(in, own);
}

Cost ring_all_gather_blocks_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(largest_block(c, v.all.size)));
  return std::max(m.ring(v, v.all.size - 1, block, 0), m.own_copy(c, block));
}

Cost ring_all_gather_in_step(const Call& c, const View& v, const CostModel& m) {
  if (!m.rings || v.all.size == 1) return 0;
  return m.ring_in_step(v, v.all.size - 1, m.bytes(double(largest_block(c, v.all.size))), 0);
}

}  // namespace

constexpr Algorithm allgather_ring = {
    .name = "ring",
    .kind = Collective::allgather,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on bucket algorithms",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = ring_all_gather_blocks,
    .cost = ring_all_gather_blocks_cost,
    .channels = true,
    .in_step = ring_all_gather_in_step,
};
constexpr Algorithm allgatherv_ring = allgather_ring.of(Collective::allgatherv);

}  // namespace gccl
