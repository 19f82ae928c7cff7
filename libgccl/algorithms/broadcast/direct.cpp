// Direct broadcast: the root sends the vector to each other rank, those of its node first. One latency where messages
// overlap, but the root's port carries n-1 vectors.
#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule direct_broadcast(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region out = output_of(c, v, mine);
  if (r != c.root) {
    co_yield recv(c.root, out);
    co_return;
  }
  const Region in = input_of(c, v, mine);
  const RootOrder order(v, c.root);
  for (Rank i = 1; i < n; ++i) co_yield send(order[i], in);
  co_yield copy(in, out);
}

Cost direct_broadcast_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  return c.count == 0 ? 0 : std::max(fan_out(v, m, bytes), m.own_copy(c, bytes));
}

}  // namespace

constexpr Algorithm broadcast_direct = {
    .name = "direct",
    .kind = Collective::broadcast,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "(n-1) V",
    .make = direct_broadcast,
    .cost = direct_broadcast_cost,
};

}  // namespace gccl
