// NVLS all-reduce: every rank has the switch sum its part of all vectors, and multicasts the sum. Each link carries
// (1 + 1/g) V in each direction, where plain messages need 2 (g-1)/g V; pipelined in chunks, of which one is summed
// while the one before is multicast.
#include "libgccl/algorithms/parts/in_switch.hpp"
#include "libgccl/algorithms/parts/pairwise.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule nvls_all_reduce(Call c, View v, Share mine) {
  const Rank g = v.node.size;
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  const Region part = out.part(v.node.rank, g);
  co_yield to_group(v, recv_reduce_all(Scope::node, g, in, part));
  co_yield to_group(v, send_all(Scope::node, g, part, out));
}

Cost nvls_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  if (!m.node_switch || c.count == 0 || v.all.size == 1) return vector_cost<pairwise_cost>(c, v, m);
  return 2 * (*m.node_switch)(m.bytes(double(c.count)));
}

Cost nvls_all_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count));
  const Hop& hop = *m.node_switch;
  // The first chunks of all lanes reduce at once, and then nothing does while they multicast, nor while the last ones
  // do.
  return after_in_step(switch_interval(hop, v.all.size, bytes, s.lanes, m.exchange_gap_ns()), 2 * hop(bytes),
                       2 * hop(double(s.lanes) * bytes), s);
}

}  // namespace

constexpr Algorithm allreduce_nvls = {
    .name = "nvls",
    .kind = Collective::allreduce,
    .source =
        "NVLS of NCCL 2.17; Klenk, Jiang, Thorson, Dennison, \"An in-network architecture for accelerating "
        "shared-memory multiprocessor collectives\", ISCA 2020",
    .steps = "2 (n-1)",
    .bytes = "2 (n-1)/n V",
    .make = nvls_all_reduce,
    .fits = one_node,
    .limit = kOneNodeLimit,
    .cost = nvls_all_reduce_cost,
    .interval = nvls_all_reduce_interval,
    .in_switch = true,
};

}  // namespace gccl
