// NVLS reduce-scatter: every rank has the node's switch sum its block of all ranks' inputs. Each card gets its block
// once.
#include "libgccl/algorithms/parts/in_switch.hpp"
#include "libgccl/algorithms/parts/pairwise.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule nvls_reduce_scatter(Call c, View v, Share mine) {
  co_yield to_group(v, recv_reduce_all(Scope::node, v.all.size, input_blocks(c, v, mine), output_of(c, v, mine)));
}

Cost nvls_reduce_scatter_cost(const Call& c, const View& v, const CostModel& m) {
  if (!m.node_switch || c.count == 0 || v.all.size == 1) return vector_cost<pairwise_reduce_scatter_cost>(c, v, m);
  return (*m.node_switch)(m.bytes(double(c.count)) * v.all.size);
}

}  // namespace

constexpr Algorithm reduce_scatter_nvls = {
    .name = "nvls",
    .kind = Collective::reduce_scatter,
    .source = "NVLS of NCCL 2.18",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = nvls_reduce_scatter,
    .fits = one_node,
    .limit = kOneNodeLimit,
    .cost = nvls_reduce_scatter_cost,
    .in_switch = true,
};

}  // namespace gccl
