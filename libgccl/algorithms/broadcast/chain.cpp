// Chain broadcast: the vector travels from the root through all positions. In many chunks it is a pipeline that uses
// every port fully.
#include "libgccl/algorithms/parts/chain.hpp"

#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

Cost broadcast_chain_over(Rank n, double bytes, const Paths& p) { return p.chain(n, bytes); }

Schedule chain_broadcast(Call c, View v, Share mine) {
  const Chain chain(v, c.root);
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  if (!chain.head()) co_yield recv(chain.before, out);
  if (!chain.tail()) co_yield send(chain.next, chain.head() ? in : out);
  if (chain.head()) co_yield copy(in, out);
}

Cost chain_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing&) {
  const double link = m.bytes(double(c.count)) * Paths(v, m).ring_ns_per_byte() / v.channels;
  return std::max(link, m.exchange_gap_ns());
}

}  // namespace

constexpr Algorithm broadcast_chain = {
    .name = "chain",
    .kind = Collective::broadcast,
    .source = "Pjesivac-Grbovic et al., Cluster Computing 10 (2007), section 3 (pipeline)",
    .steps = "n-1",
    .bytes = "V",
    .make = chain_broadcast,
    .cost = broadcast_cost<broadcast_chain_over>,
    .channels = true,
    .interval = chain_broadcast_interval,
};

}  // namespace gccl
