#include "sim/engine/executor.hpp"
#include "sim/model/network.hpp"

namespace gccl::sim {

Outcome run_model(const Workload& workload) {
  ModelNetwork network(*workload.cluster);
  return Executor<ModelNetwork>(workload, network).run();
}

}  // namespace gccl::sim
