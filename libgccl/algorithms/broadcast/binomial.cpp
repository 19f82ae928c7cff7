// Binomial tree broadcast: the rank at position u gets the vector from the position u without its lowest bit, and sends
// one to each child.
#include "libgccl/algorithms/parts/binomial.hpp"

#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule binomial_broadcast(Call c, View v, Share mine) {
  return binomial_broadcast_from(Numbering::from(v, c.root), input_of(c, v, mine), output_of(c, v, mine));
}

// The root has no more messages on their way than its lanes' windows hold, and a rank that passes chunks on one a lane
// where they wait for their receive.
Cost binomial_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Paths p(v, m);
  const double bytes = m.bytes(double(c.count));
  Cost messages = 0, cycle = 0;
  for (Count d = 1; d < v.all.size; d *= 2) {
    const Cost message = m.in_channel(p.binomial(d, Tree::down), bytes);
    messages += message;
    if (m.met(bytes) && d > 1 && d + 1 < v.all.size) cycle = std::max(cycle, message / double(s.lanes));
  }
  return std::max({binomial_interval(v.all.size, {.vector = bytes}, m.overhead_ns, Tree::down, p),
                   messages / chunks_in_flight(s, 1), cycle});
}

}  // namespace

constexpr Algorithm broadcast_binomial = {
    .name = "binomial",
    .kind = Collective::broadcast,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.2",
    .steps = "ceil(log2 n)",
    .bytes = "ceil(log2 n) V",
    .make = binomial_broadcast,
    .cost = broadcast_cost<binomial_broadcast_from_cost>,
    .at_once = true,
    .interval = binomial_broadcast_interval,
};

}  // namespace gccl
