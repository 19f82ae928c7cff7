// What a scenario demands of its results.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {

struct Check;
struct ScenarioRun;
struct Scenario;

// One check and the results that it is about. "expect" is an object, or a list of objects; each has checks (judge/) and
// filters: "cluster" (its name), "engine", "ranks", "bytes" (as the run states them), "algorithm" (a name, or "auto").
struct Expectation {
  json::Node where;    // the check's own value
  json::Node filters;  // the object that it is in
  const Check* check = nullptr;
  double limit = 0;                              // in the check's unit
  std::string subject;                           // what is compared with: an algorithm, a run's label, a file
  std::optional<json::Node> label;               // names the run to compare with
  std::optional<std::size_t> run;                // which one that is
  std::shared_ptr<const nlohmann::json> stored;  // the rows of the stored result to compare with
  std::optional<std::string> cluster, engine, algorithm;
  std::optional<std::int64_t> ranks;
  std::optional<std::uint64_t> bytes;
};

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
