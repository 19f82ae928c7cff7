// An operation's fixed cost.
#include <algorithm>

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

double operation_ns(const Cluster& cluster, const Part& part, const SimulatedCommunicator& communicator) {
  const Plan& plan = part.plan(communicator);
  const Protocol& protocol = cluster.protocols()[plan.protocol];
  if (cluster.corrections().empty()) return protocol.operation_ns;
  const View view = communicator.layout->view(0);
  if (!view.uniform()) return protocol.operation_ns;
  const Correction* const found =
      correction_of(cluster.corrections(),
                    {part.task->kind, view.nodes, view.rails, std::string(plan.algorithm->name), protocol.name});
  return found ? std::max(0.0, protocol.operation_ns + found->at(part.bytes)) : protocol.operation_ns;
}

}  // namespace gccl::sim
