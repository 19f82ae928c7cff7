#include "libgccl/algorithms/parts/root_order.hpp"

namespace gccl {

// Blocks are in the order of the ranks, so a gather and a scatter go round by that.
std::vector<Rank> order_from_root(const Call& call, const View& v) {
  const bool blocks = counts_blocks(call.kind);
  if (!has_root(call.kind) || (call.root == 0 && (blocks || v.by_node || !RootOrder::by_node(v)))) return {};
  std::vector<Rank> order(v.all.size);
  const RootOrder rooted(v, call.root);
  for (Rank i = 0; i < v.all.size; ++i) order[i] = blocks ? v.all[Count(call.root) + i] : rooted[i];
  return order;
}

}  // namespace gccl
