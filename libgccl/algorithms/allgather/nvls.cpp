// NVLS all-gather: every rank multicasts its block through the node's switch. Each card sends its block once.
#include "libgccl/algorithms/parts/in_switch.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule nvls_all_gather(Call c, View v, Share mine) {
  co_yield to_group(v, send_all(Scope::node, v.all.size, input_of(c, v, mine), output_blocks(c, v, mine)));
}

Cost nvls_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count));
  if (!m.node_switch || c.count == 0) return std::max(all_pairs(v, m, block), m.own_copy(c, block));
  return (*m.node_switch)(block * v.all.size);
}

}  // namespace

constexpr Algorithm allgather_nvls = {
    .name = "nvls",
    .kind = Collective::allgather,
    .source = "NVLS of NCCL 2.18",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = nvls_all_gather,
    .fits = one_node,
    .limit = kOneNodeLimit,
    .cost = nvls_all_gather_cost,
    .in_switch = true,
};

}  // namespace gccl
