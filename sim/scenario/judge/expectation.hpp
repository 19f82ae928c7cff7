// "expect": reading what a scenario demands of its results.
#pragma once

#include "sim/scenario/description/scenario.hpp"

namespace gccl::sim {

// Where nothing is stated, a run that must complete is expected to. Throws json::InputError also where the run can
// never satisfy or violate it: an algorithm that is not run, a check on bandwidth of a sequence, a filter that names no
// size of the run.
std::vector<Expectation> read_expectations(const std::optional<json::Node>& node, const ScenarioRun& run);

// The name of an algorithm that the run may run, or `also`. For checks that compare with one.
std::string read_algorithm(const json::Node& node, const ScenarioRun& run, std::string_view also);

// Looks up the labels that expectations name, once all runs are read. Throws json::InputError: no run or several have
// the label, or the run is another collective.
void resolve_runs(Scenario& scenario);

}  // namespace gccl::sim
