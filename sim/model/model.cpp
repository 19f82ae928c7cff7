#include "sim/engine/executor.hpp"
#include "sim/engine/unshared.hpp"
#include "sim/model/booked_way.hpp"
#include "sim/model/network.hpp"

namespace gccl::sim {

Outcome run_model(const Workload& workload) {
  if (auto outcome = run_unshared<BookedWay>(workload)) return *std::move(outcome);
  ModelNetwork network(*workload.cluster);
  return Executor<ModelNetwork>(workload, network).run();
}

}  // namespace gccl::sim
