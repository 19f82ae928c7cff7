#include "sim/engine/executor.hpp"
#include "sim/simgrid/network.hpp"

namespace gccl::sim {

Outcome run_simgrid(const Workload& workload) {
  SimGridNetwork network(*workload.cluster);
  return Executor<SimGridNetwork>(workload, network).run();
}

}  // namespace gccl::sim
