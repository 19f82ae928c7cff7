#include "libgccl/communicator/setting.hpp"

namespace gccl {

void Setting::use(const Layout& layout, Rank rank) {
  view = layout.view(rank);
  first = layout.view(0);
  // Nodes may be what a layout makes of ranks that share memory.
  const TransportModel& t = transport_model_of(*models, cost_model, in_memory || first.nodes == 1);
  costs = t.costs_on(first, 1);
  tuning = t.tuning.where(oversubscribed);
}

}  // namespace gccl
