// What a scenario demands of its results.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {

struct Run;
struct Scenario;

// One check and the results that it is about. "expect" is an object, or a list of objects; each has filters and checks:
//   filters  "cluster" (its name), "engine", "ranks", "bytes" (as the run states them), "algorithm" (a name, or "auto")
//   checks   "max_time_us", "min_time_us"       every selected result took at most / at least this long
//            "min_busbw_GBps"                   every selected result's bus bandwidth is at least this
//            "correct": true                    no wrong element (needs "payload": "verify")
//            "fastest": NAME                    at every selected point NAME is the fastest (or as fast)
//            "within_percent_of": {"algorithm": NAME or "best", "percent": p}
//                                               the selected algorithm ("auto" unless stated) takes at most p % longer
//            "within_percent_of": {"run": LABEL, "percent": p}, {"result": FILE, "percent": p}
//                                               every selected result takes at most p % longer than the same point of
//                                               the run with this label, or of a stored result of this run
struct Expectation {
  enum class Check : std::uint8_t { max_time, min_time, min_busbw, correct, fastest, within };
  json::Node where;  // the check's own value
  Check check{};
  double limit = 0;                              // us, GB/s or percent
  std::string subject;                           // fastest: the algorithm; within: compared with this one, or "best"
  std::optional<std::size_t> run;                // within: compared with this run of the scenario
  std::shared_ptr<const nlohmann::json> stored;  // within: compared with the rows of this stored result
  std::optional<std::string> cluster, engine, algorithm;
  std::optional<std::int64_t> ranks;
  std::optional<std::uint64_t> bytes;
};

// Throws json::InputError also where the run can never satisfy or violate it: an algorithm that is not run, a check on
// bandwidth of a sequence, a filter that names no size of the run.
std::vector<Expectation> read_expectations(const json::Node& node, const Run& run);

// Looks up the labels that expectations name, once all runs are read. Throws json::InputError: no run or several have
// the label, or the run is another collective.
void resolve_runs(Scenario& scenario);

}  // namespace gccl::sim
