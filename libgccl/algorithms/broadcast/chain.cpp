// Chain broadcast: the vector travels from the root through all positions. In many chunks it is a pipeline that uses
// every port fully.
#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

Cost broadcast_chain_over(Rank n, double bytes, const Paths& p) { return p.chain(n, bytes); }

Schedule chain_broadcast(Call c, View v, Share mine) {
  const Numbering u = Numbering::from(v.all, c.root);
  const Region in = slice(input_of(c, v.all.size, v.all.rank), mine);
  const Region out = slice(output_of(c, v.all.size, v.all.rank), mine);
  if (u.rank > 0) co_yield recv(u[u.rank - 1], out);
  if (u.rank + 1 < u.size) co_yield send(u[u.rank + 1], u.rank == 0 ? in : out);
  if (u.rank == 0) co_yield copy(in, out);
}

Cost chain_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing&) {
  return std::max(m.bytes(double(c.count)) * Paths(v, m).shift(1).beta_ns_per_byte, m.exchange_gap_ns());
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
    .interval = chain_broadcast_interval,
};

}  // namespace gccl
