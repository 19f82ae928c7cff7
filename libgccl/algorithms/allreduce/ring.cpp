// Ring all-reduce: a ring reduce-scatter, then a ring all-gather. Bandwidth-optimal.
#include "libgccl/algorithms/parts/ring.hpp"

#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {

namespace {

Schedule ring_all_reduce_over(Ring g, Region in, Region out) {
  co_yield ring_reduce_scatter(g, in, out);
  co_yield ring_all_gather(g, out);
}

Schedule ring_of_channel(Call c, View v, Share mine) {
  return ring_all_reduce_over(ChannelOrder(v), input_of(c, v, mine), output_of(c, v, mine));
}

}  // namespace

Schedule ring_all_reduce(Group g, Region in, Region out) { return ring_all_reduce_over(g, in, out); }

Cost ring_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  const double part = bytes / n;
  return p.ring(2.0 * (n - 1), part, (n - 1) * p.model().combine(part));
}

namespace {

// Every channel adds up, then every channel hands round; the first to be done with the one begins the other a message
// before the last.
Cost ring_all_reduce_in_step(const Call& c, const View& v, const CostModel& m) {
  if (!m.rings || v.all.size == 1) return 0;
  const double steps = v.all.size - 1, part = m.bytes(double(c.count)) / v.all.size;
  return m.ring_in_step(v, steps, part, steps * m.combine(part)) + m.ring_in_step(v, steps, part, 0) -
         part * m.channels(v).busiest.beta_ns_per_byte;
}

}  // namespace

constexpr Algorithm allreduce_ring = {
    .name = "ring",
    .kind = Collective::allreduce,
    .source = "Patarasuk, Yuan, JPDC 69 (2009), section 3",
    .steps = "2 (n-1)",
    .bytes = "2 (n-1)/n V",
    .make = ring_of_channel,
    .cost = vector_cost<ring_all_reduce_cost>,
    .channels = true,
    .in_step = ring_all_reduce_in_step,
};

}  // namespace gccl
