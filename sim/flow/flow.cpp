#include "sim/engine/executor.hpp"
#include "sim/engine/shared_network.hpp"
#include "sim/flow/fair_flows.hpp"

namespace gccl::sim {

static_assert(Network<SharedNetwork<FairFlows>>);

Outcome run_flow(const Workload& workload) {
  SharedNetwork<FairFlows> network(*workload.cluster);
  return Executor<SharedNetwork<FairFlows>>(workload, network).run();
}

}  // namespace gccl::sim
