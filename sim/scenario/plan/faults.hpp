// What of a run's faults depends on the cluster and the engine.
#pragma once

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

// Throws json::InputError: an engine that knows no faults, or not these; a rank, card, node, NIC, link or switch that
// is not there; more ranks or operations than the protocol engine
// plays; what cannot be done to real ranks (real.hpp).
void check_faults(const ScenarioRun& run, const SimulatedWorld& world, Engine engine,
                  const std::optional<RealMeans>& real);

// Throws json::InputError: an expectation that names ranks which are not there, or could never hold with those that
// are. `alone`: the scenario has no other world.
void check_expected_ranks(const ScenarioRun& run, const SimulatedWorld& world, Engine engine, bool alone);

// The faults that happen with this seed.
FaultPlan fault_plan(const ScenarioRun& run, const SimulatedWorld& world, std::uint64_t seed);

// Those of a planned point, as a scenario states them.
nlohmann::json faults_json(const FaultPlan& plan);

}  // namespace gccl::sim
