// Chain reduce: a vector travels from the last position to the root and is summed on the way. In many chunks it is a
// pipeline that uses every port fully. Scratch: one vector except at both ends.
#include "libgccl/algorithms/parts/chain.hpp"

#include "libgccl/algorithms/parts/sums.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

Cost reduce_chain_over(Rank n, double bytes, const Paths& p) {
  return p.chain(n, bytes) + (n - 1) * p.model().combine(bytes);
}

Schedule chain_reduce(Call c, View v, Share mine) {
  const Chain chain(v, c.root);
  const Region in = slice(input_of(c, v.all.size, v.all.rank), mine), sum = sums_of(c, v, mine);
  if (chain.size == 1) co_yield copy(in, sum);
  if (!chain.tail()) co_yield recv_reduce(chain.next, in, sum);
  if (!chain.head()) co_yield send(chain.before, chain.tail() ? in : sum);
}

Count chain_reduce_scratch(const Call& c, const View& v, Share mine) {
  const Chain chain(v, c.root);
  return chain.head() || chain.tail() ? 0 : sums_of(c, v, mine).count;
}

// A rank in the middle sends a chunk's sums from the lane's scratch, which the next chunk's wait for.
Cost chain_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count));
  const Hop hop{Paths(v, m).shift(1).alpha_ns, Paths(v, m).ring_ns_per_byte()};
  const Cost cycle = v.all.size > 2 ? (hop(bytes) + m.combine(bytes)) / double(s.lanes) : 0;
  return std::max({bytes * hop.beta_ns_per_byte / v.channels, m.exchange_gap_ns(), m.combine(bytes), cycle});
}

}  // namespace

constexpr Algorithm reduce_chain = {
    .name = "chain",
    .kind = Collective::reduce,
    .source = "Pjesivac-Grbovic et al., Cluster Computing 10 (2007), section 3 (pipeline)",
    .steps = "n-1",
    .bytes = "V",
    .make = chain_reduce,
    .scratch = chain_reduce_scratch,
    .cost = vector_cost<reduce_chain_over>,
    .channels = true,
    .interval = chain_reduce_interval,
};

}  // namespace gccl
