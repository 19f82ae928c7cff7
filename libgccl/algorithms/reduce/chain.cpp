// Chain reduce: a vector travels from the last position to the root and is summed on the way. In many chunks it is a
// pipeline that uses every port fully. Scratch: one vector except at both ends.
#include "libgccl/algorithms/parts/chain.hpp"

#include "libgccl/algorithms/parts/sums.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Cost reduce_chain_over(Rank n, double bytes, const Paths& p) {
  return p.chain(n, bytes, Tree::up) + (n - 1) * p.model().combine(bytes);
}

Schedule chain_reduce(Call c, View v, Share mine) {
  const Chain chain(v, c.root);
  const Region in = input_of(c, v, mine), sum = sums_of(c, v, mine);
  if (chain.size == 1) co_yield copy(in, sum);
  if (!chain.tail()) co_yield recv_reduce(chain.next, in, sum);
  if (!chain.head()) co_yield send(chain.before, chain.tail() ? in : sum);
}

Count chain_reduce_scratch(const Call& c, const View& v, Share mine) {
  const Chain chain(v, c.root);
  return chain.head() || chain.tail() ? 0 : sums_of(c, v, mine).count;
}

// What long messages of several channels, which share links fairly and so all come late, lose of the network's links.
// By the same measurements as the exponent below.
constexpr double kDrift = 1.06;

// A rank in the middle sends a chunk's sums from the lane's scratch, which the next chunk's wait for, over the slowest
// hop too.
Cost chain_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Paths p(v, m);
  const double bytes = m.bytes(double(c.count));
  const Cost link = bytes * p.chain_ns_per_byte(Tree::up), combine = m.combine(bytes);
  const Cost cycle =
      v.all.size > 2 ? (m.in_channel(p.slowest_in_chain(Tree::up), bytes) + combine) / double(s.lanes) : 0;
  const double drift = bytes > kTurnsAbove && s.lanes > 1 && v.nodes > 1 ? kDrift : 1;
  const Cost busiest = std::max({link / v.channels * drift, m.exchange_gap_ns(), combine});
  const Cost each = cycles_meet(cycle, busiest);
  // The first messages of all channels share a link, and long ones arrive at once; the next link too, where they do not
  // wait for each other's combining (1.6: by the flow engine, 4 ranks of dgx-h100-superpod-2048, 1 GiB, 16 and 32
  // channels; 0.8: by the times of cycles_meet()).
  const double links = bytes <= kTurnsAbove ? 0.8 : combine * v.channels > link ? 1 : std::min(1.6, v.all.size - 2.0);
  const Cost in_step = double(s.lanes - 1) * busiest + links * (link - link / p.in_step(Tree::up));
  return after_in_step(each, 0, in_step, s);
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
