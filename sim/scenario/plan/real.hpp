// What of a scenario can be done to real ranks on this machine, before any is started.
#pragma once

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

constexpr Rank kRealRanksMax = 64;

// Throws json::InputError: the caller cannot start ranks (`real` is absent), more of them than kRealRanksMax, buffers
// in place, stated channels, window or protocol. Chunks may be stated: moments of faults count steps and bytes of the
// simulated schedule.
void check_real_ranks(const ScenarioRun& run, const SimulatedWorld& world, const std::optional<RealMeans>& real);

// Throws json::InputError where a collective has two algorithms, stated or planned: real ranks take the one that
// GCCL_ALGORITHM names.
void check_real_algorithms(const Point& point);

// Throws json::InputError where the fault cannot be inflicted by these means: why, and the nearest way.
void check_real_fault(const Fault& fault, const json::Node& where, const ScenarioRun& run, const SimulatedWorld& world,
                      const RealMeans& real);

// Takes out the expectations about times, bandwidths and rates of the virtual cluster, which this machine's ranks say
// nothing about. How many those were.
std::size_t leave_out_virtual_times(ScenarioRun* run);

}  // namespace gccl::sim
