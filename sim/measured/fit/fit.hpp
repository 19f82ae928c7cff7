// Parameters under which closed forms come nearest to measurements, and how far these may be trusted.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "sim/measured/fit/corrections.hpp"
#include "sim/measured/fit/parameters.hpp"
#include "sim/measured/predict/predict.hpp"
#include "sim/measured/validation/statistics.hpp"

namespace gccl::sim {

// Lowers f(x) within bounds, from x, with at most so many evaluations; leaves the best in x and returns it. Without
// derivatives: predictions have steps where another algorithm or slicing becomes the fastest.
using Minimise = double (*)(unsigned n, const double* least, const double* most, double* x,
                            double (*f)(const double* x, void* data), void* data, int evaluations_max);

enum class HoldOut : std::uint8_t {
  scales,  // the larger half of the numbers of ranks
  sizes,   // every second size of each curve
  none
};

struct FitOptions {
  HoldOut hold_out = HoldOut::scales;
  unsigned jobs = 1;  // fits at once, for leave-one-scale-out
  int evaluations_max = 1000;
  std::vector<std::string> keep{};  // parts of names of parameters that stay as they are
  bool corrections = true;          // by size, of what the parameters leave
  std::function<void(std::size_t done, std::size_t of)> progress{};  // after each fit; may be empty
};

struct FitReport {
  struct Value {
    std::string name;
    double before = 0, after = 0;
    bool at_limit = false;  // the points ask for more than its bounds allow
  };
  struct Errors {
    std::string what;  // "4 x 4 cards"
    ErrorStatistics before, after;
  };
  std::vector<Value> fitted;
  std::vector<std::string> undetermined;  // no point's prediction depends on them
  bool by_transports = false;             // the set has `backends`: predictions go by its `transports`, not fitted
  // By scale. Before: of the set as it was given, with its corrections. After: with those that are found, but of what
  // is fitted without, which they would leave no error of.
  std::vector<Errors> used, held_out;
  Errors all_used, all_held_out;
  CorrectionReport corrections;
  // Each scale as parameters predict it that were fitted to all others; empty where there is only one.
  std::vector<Errors> left_out;
  std::size_t outliers = 0, held_out_outliers = 0;  // rows that were not fitted, and not compared
};

// What is fitted, and to what.
struct FitProblem {
  const std::vector<Measurement>* rows = nullptr;  // of the measured points
  std::filesystem::path cluster_file;
  json::Node cluster;  // its description
  Parameters parameters;
};

// Changes problem.parameters. A set without protocols gets one, "default", whose fixed cost of a call is fitted too,
// unless its ranks are connected by GCCL's own transports. The sum of Huber's loss of log(predicted / measured) over
// the rows that are no outliers among those that are fitted, and a little for each parameter's distance from where it
// was, so that those which points do not separate stay near. Corrections are made anew. Throws json::InputError where
// no row can be compared, and where one of `keep` is in no parameter's name.
FitReport fit(FitProblem& problem, Minimise minimise, const FitOptions& options, std::vector<SkippedRow>& skipped);

// "gccl/parameters/1": `base` with what differs from `before`; {"base": NAME}, or the parameters that a cluster has in
// itself.
nlohmann::json parameter_set(const std::string& name, const std::string& description, const nlohmann::json& base,
                             const Parameters& before, const Parameters& after, const std::string& source);

std::string fit_text(const FitReport& report, std::size_t columns);

}  // namespace gccl::sim
