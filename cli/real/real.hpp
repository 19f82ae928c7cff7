// `gccl run --engine real`: the timeline of a scenario's faults, inflicted on real ranks of this machine.
#pragma once

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::real {

// By its file names; throws json::InputError where the program has no runtime. Before run().
void load_runtime();

// Plays the workload in virtual time first, which says in which operation a fault strikes; then starts the ranks as
// children of this process, inflicts the faults, and returns what came of it in the words of the simulation, with what
// differs from it. Needs a process without other threads, which it may leave in another network namespace. No process
// outlives it, nor this process, however it ends. Throws std::runtime_error where the system refuses.
sim::Outcome run(const sim::Workload& workload, const sim::RealMeans& means);

}  // namespace gccl::real
