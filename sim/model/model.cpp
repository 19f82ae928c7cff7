#include "sim/engine/executor.hpp"
#include "sim/model/network.hpp"
#include "sim/model/unshared.hpp"

namespace gccl::sim {

Outcome run_model(const Workload& workload) {
  if (auto outcome = run_unshared(workload)) return *std::move(outcome);
  ModelNetwork network(*workload.cluster);
  return Executor<ModelNetwork>(workload, network).run();
}

}  // namespace gccl::sim
