#include "libgccl/select/cheapest.hpp"

namespace gccl {

const Algorithm* cheapest(const Call& call, const View& view, const CostModel& model,
                          std::span<const Algorithm> table) {
  const Algorithm* best = nullptr;
  Cost best_cost = 0;
  for (const Algorithm& a : table) {
    if (a.kind != call.kind || a.variant || !a.cost || !a.can(call, view)) continue;
    const Cost cost = a.cost(call, view, model);
    if (best && !(cost < best_cost)) continue;
    best = &a;
    best_cost = cost;
  }
  return best;
}

}  // namespace gccl
