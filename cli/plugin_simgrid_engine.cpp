// The SimGrid engine.
#include "sim/engine/workload.hpp"

extern "C" void gccl_simgrid(const gccl::sim::Workload& workload, gccl::sim::Outcome* outcome) {
  *outcome = gccl::sim::run_simgrid(workload);
}
