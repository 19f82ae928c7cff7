#include "sim/measured/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/measured/validation/outliers.hpp"

namespace gccl::sim {
namespace {

using RowIndices = std::vector<std::size_t>;

// Errors beyond this (of the logarithm, about 20 %) count by their size, not by its square: what no parameter explains
// shall not pull at all of them.
constexpr double kHuber = 0.2;
// What it costs to change a parameter by a factor of e, in addition to the mean loss of the points.
constexpr double kPrior = 1e-4;
// A parameter that changes no prediction by so much when it is doubled is not determined.
constexpr double kSensitive = 2e-3;
// Far beyond the loss of any prediction worth looking at, and not so far that a model of the loss has nothing else.
constexpr double kImpossible = 10;
constexpr double kAtLimit = 1e-3;
constexpr std::size_t kFitsMax = 5;  // to see what each scale is predicted as by the others
constexpr double kLeastUs = 1e-6;    // of a prediction, as its logarithm is looked at

double huber(double r) {
  const double a = std::abs(r);
  return a <= kHuber ? r * r / 2 : kHuber * (a - kHuber / 2);
}

// Some rows of the measurements, and their predictions under any parameters.
class Evaluated {
 public:
  Evaluated(const FitProblem& problem, const RowIndices& used) : problem_(problem) {
    for (const std::size_t i : used) rows_.push_back((*problem.rows)[i]);
    points_.emplace(rows_, read_cluster(problem.cluster, problem.parameters), problem.cluster_file, skipped_);
  }
  Evaluated(const Evaluated&) = delete;

  // What corrections are made from. Measured nodes that share one of the cluster's are none of its own.
  std::vector<CorrectedPoint> corrected_points(const Parameters& p) const {
    std::vector<CorrectedPoint> all;
    std::map<std::string, double> operation_us;
    for (const Protocol& q : p.protocols) operation_us[q.name] = q.operation_ns / 1e3;
    for (const Predicted& at : predict(p)) {
      const Measurement& m = rows_[at.row];
      if (points_->packed(at.row)) continue;
      const bool stated = !at.protocol.empty() && lower_case(m.protocol) == lower_case(at.protocol);
      all.push_back({{m.kind, m.nodes, m.cards, at.planner.empty() ? at.algorithm : std::string(),
                      stated ? at.protocol : std::string()},
                     m.bytes,
                     m.time_us,
                     at.us,
                     operation_us.at(at.protocol)});
    }
    return all;
  }
  std::vector<Predicted> predict(const Parameters& p) const {
    return points_->closed(read_cluster(problem_.cluster, p));
  }
  // log(predicted / measured).
  std::vector<double> residuals(const Parameters& p) const {
    std::vector<double> all;
    for (const Predicted& at : predict(p)) all.push_back(std::log(std::max(at.us, kLeastUs) / rows_[at.row].time_us));
    return all;
  }
  ErrorStatistics errors(const Parameters& p) const {
    std::vector<double> all;
    for (const double r : residuals(p)) all.push_back((std::exp(r) - 1) * 100);
    return statistics_of(std::move(all));
  }

 private:
  const FitProblem& problem_;
  std::vector<Measurement> rows_;
  std::vector<SkippedRow> skipped_;
  std::optional<MeasuredPoints> points_;
};

bool kept(const std::string& name, const std::vector<std::string>& keep) {
  return std::any_of(keep.begin(), keep.end(), [&](const std::string& part) { return name.find(part) != name.npos; });
}

void check_keep(const std::vector<std::string>& keep, const Parameters& start) {
  std::vector<std::string> names;
  for (const Adjustable& a : adjustables_of(start)) names.push_back(a.name());
  for (const std::string& part : keep)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return kept(name, {part}); }))
      throw json::InputError(fmt::format("--keep: no parameter has \"{}\" in its name; there are {}",
                                         json::valid_text(part), fmt::join(names, ", ")));
  if (std::all_of(names.begin(), names.end(), [&](const std::string& name) { return kept(name, keep); }))
    throw json::InputError(fmt::format("--keep: nothing is left to fit of {}", fmt::join(names, ", ")));
}

// Nothing where the cluster's description cannot have such parameters: a box's links across must be narrower than those
// of its switches.
std::optional<std::vector<double>> residuals_or_none(const Evaluated& points, const Parameters& p) {
  try {
    return points.residuals(p);
  } catch (const json::InputError&) {
    return std::nullopt;
  }
}

// Those of the adjustables that some prediction depends on; the others' names go to `undetermined`.
std::vector<Adjustable> sensitive(const Evaluated& points, const Parameters& start,
                                  const std::vector<std::string>& keep, std::vector<std::string>& undetermined) {
  const std::vector<double> before = points.residuals(start);
  std::vector<Adjustable> all;
  for (const Adjustable& a : adjustables_of(start)) {
    if (kept(a.name(), keep)) continue;
    double most = 0;
    for (const double factor : {0.5, 2.0}) {
      Parameters p = start;
      // A time of 0 becomes a microsecond.
      const double now = a.value(start), changed = now > 0 ? now * factor : 1000 * (factor - 1);
      a.set(p, std::clamp(changed, a.least, a.most));
      const std::optional<std::vector<double>> tried = residuals_or_none(points, p);
      if (!tried) continue;
      const std::vector<double>& after = *tried;
      for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i)
        most = std::max(most, std::abs(after[i] - before[i]));
    }
    if (most > kSensitive)
      all.push_back(a);
    else
      undetermined.push_back(a.name());
  }
  return all;
}

struct Search {
  const Evaluated& points;
  const Parameters& start;
  const std::vector<Adjustable>& adjustables;
  std::exception_ptr error = nullptr;

  // x: the parameters' logarithms.
  Parameters at(const double* x) const {
    Parameters p = start;
    for (std::size_t i = 0; i < adjustables.size(); ++i)
      adjustables[i].set(p, std::max(0.0, std::exp(x[i]) - adjustables[i].offset));
    return p;
  }
  double origin(std::size_t i) const {
    const Adjustable& a = adjustables[i];
    return std::log(std::clamp(a.value(start), a.least, a.most) + a.offset);
  }
  static double loss(const double* x, void* self) {
    auto& s = *static_cast<Search*>(self);
    if (s.error) return 1e300;
    try {
      const std::optional<std::vector<double>> residuals = residuals_or_none(s.points, s.at(x));
      if (!residuals) return kImpossible;
      double sum = 0;
      for (const double r : *residuals) sum += huber(r);
      sum /= double(std::max<std::size_t>(1, residuals->size()));
      for (std::size_t i = 0; i < s.adjustables.size(); ++i) sum += kPrior * std::pow(x[i] - s.origin(i), 2);
      return sum;
    } catch (...) {  // must not pass through a C library
      s.error = std::current_exception();
      return 1e300;
    }
  }
};

Parameters fitted(const Evaluated& points, const Parameters& start, const std::vector<Adjustable>& adjustables,
                  Minimise minimise, int evaluations_max) {
  if (adjustables.empty()) return start;
  Search search{points, start, adjustables};
  std::vector<double> x, least, most;
  for (std::size_t i = 0; i < adjustables.size(); ++i) {
    x.push_back(search.origin(i));
    least.push_back(std::log(adjustables[i].least + adjustables[i].offset));
    most.push_back(std::log(adjustables[i].most + adjustables[i].offset));
  }
  minimise(unsigned(x.size()), least.data(), most.data(), x.data(), Search::loss, &search, evaluations_max);
  if (search.error) std::rethrow_exception(search.error);
  return search.at(x.data());
}

// Nodes and cards of each.
using Scale = std::pair<Rank, Rank>;
std::string scale_name(const Scale& s) { return fmt::format("{} x {} cards", s.first, s.second); }

// By number of ranks, then of nodes.
struct FewerRanks {
  bool operator()(const Scale& a, const Scale& b) const {
    return std::pair(a.first * a.second, a.first) < std::pair(b.first * b.second, b.first);
  }
};
using Scales = std::map<Scale, RowIndices, FewerRanks>;

Scales by_scale(const std::vector<Measurement>& rows, const RowIndices& some) {
  Scales all;
  for (const std::size_t i : some) all[{rows[i].nodes, rows[i].cards}].push_back(i);
  return all;
}

// The rows that are fitted; the others are held out.
std::set<std::size_t> chosen(const std::vector<Measurement>& rows, const RowIndices& usable, HoldOut hold_out) {
  std::set<std::size_t> used(usable.begin(), usable.end());
  if (hold_out == HoldOut::scales) {
    const Scales scales = by_scale(rows, usable);
    std::size_t left = (scales.size() + 1) / 2;
    for (const auto& [scale, members] : scales)
      if (left == 0)
        for (const std::size_t i : members) used.erase(i);
      else
        --left;
  } else if (hold_out == HoldOut::sizes) {
    const auto curve = [&](const Measurement& m) {
      return std::tuple(m.system, m.nodes, m.cards, m.kind, m.algorithm, m.protocol);
    };
    std::map<decltype(curve(rows[0])), std::set<Count>> sizes;
    for (const std::size_t i : usable) sizes[curve(rows[i])].insert(rows[i].bytes);
    for (const std::size_t i : usable) {
      const std::set<Count>& of_curve = sizes[curve(rows[i])];
      if (std::distance(of_curve.begin(), of_curve.find(rows[i].bytes)) % 2) used.erase(i);
    }
  }
  return used;
}

// Those that are no outliers beside the others of `some`.
RowIndices without_outliers(const std::vector<Measurement>& rows, const RowIndices& some, std::size_t& outliers) {
  std::vector<Measurement> judged;
  for (const std::size_t i : some) judged.push_back(rows[i]);
  const std::vector<std::string> why = outliers_of(judged);
  RowIndices left;
  for (std::size_t k = 0; k < some.size(); ++k)
    if (why[k].empty()) left.push_back(some[k]);
  outliers = some.size() - left.size();
  return left;
}

FitReport::Errors compared(const FitProblem& problem, std::string what, const RowIndices& rows,
                           const Parameters& before, const Parameters& after) {
  const Evaluated points(problem, rows);
  return {std::move(what), points.errors(before), points.errors(after)};
}

std::vector<FitReport::Errors> compared_by_scale(const FitProblem& problem, const RowIndices& rows,
                                                 const Parameters& before, const Parameters& after) {
  std::vector<FitReport::Errors> all;
  for (const auto& [scale, members] : by_scale(*problem.rows, rows))
    all.push_back(compared(problem, scale_name(scale), members, before, after));
  return all;
}

// Each scale by what is fitted to the others, each fit in a process of its own. Where there are more than kFitsMax
// scales, a fit leaves out every so many.
std::vector<FitReport::Errors> leave_one_out(const FitProblem& problem, const Parameters& before,
                                             const RowIndices& usable, Minimise minimise, const FitOptions& options) {
  const Scales scales = by_scale(*problem.rows, usable);
  if (scales.size() < 2) return {};
  const std::vector<std::pair<Scale, RowIndices>> list(scales.begin(), scales.end());
  const std::size_t fits = std::min(list.size(), kFitsMax);
  std::vector<std::size_t> order(fits);
  std::iota(order.begin(), order.end(), 0);
  const auto job = [&](std::size_t fit) {
    RowIndices others;
    for (std::size_t k = 0; k < list.size(); ++k)
      if (k % fits != fit) others.insert(others.end(), list[k].second.begin(), list[k].second.end());
    const Evaluated points(problem, others);
    std::vector<std::string> undetermined;
    const auto adjustables = sensitive(points, problem.parameters, options.keep, undetermined);
    Parameters after = fitted(points, problem.parameters, adjustables, minimise, options.evaluations_max);
    CorrectionReport ignored;
    if (options.corrections) after.corrections = corrections_of(points.corrected_points(after), ignored);
    nlohmann::json out = nlohmann::json::array();
    for (std::size_t k = fit; k < list.size(); k += fits) {
      const Evaluated left(problem, list[k].second);
      for (const ErrorStatistics& e : {left.errors(before), left.errors(after)})
        out.push_back({e.points, e.mape, e.median, e.p90, e.worst, e.bias});
    }
    return out.dump();
  };
  std::vector<nlohmann::json> results;
  const auto finished = [&](std::size_t, const std::string&, std::size_t done) {
    if (options.progress) options.progress(done, fits + 1);
  };
  for (const std::string& text : run_pool(order, job, {.children = options.jobs, .finished = finished}))
    results.push_back(nlohmann::json::parse(text));
  const auto read = [](const nlohmann::json& e) {
    return ErrorStatistics{e[0].get<std::size_t>(), e[1].get<double>(), e[2].get<double>(),
                           e[3].get<double>(),      e[4].get<double>(), e[5].get<double>()};
  };
  std::vector<FitReport::Errors> all;
  for (std::size_t k = 0; k < list.size(); ++k) {
    const nlohmann::json& both = results[k % fits];
    const std::size_t at = k / fits * 2;
    all.push_back({scale_name(list[k].first), read(both[at]), read(both[at + 1])});
  }
  return all;
}

}  // namespace

FitReport fit(FitProblem& problem, Minimise minimise, const FitOptions& options, std::vector<SkippedRow>& skipped) {
  const std::vector<Measurement>& rows = *problem.rows;
  FitReport report;
  report.by_transports = !problem.parameters.backends.empty();
  if (problem.parameters.protocols[0].name.empty() && !report.by_transports)
    problem.parameters.protocols[0].name = "default";
  check_keep(options.keep, problem.parameters);
  // What can be compared at all.
  const auto cluster = read_cluster(problem.cluster, problem.parameters);
  const std::size_t measured = rows.size() + skipped.size();  // before those of `rows` that are skipped from here on
  const MeasuredPoints points(rows, cluster, problem.cluster_file, skipped);
  RowIndices usable;
  for (const Predicted& p : points.closed(cluster, &skipped)) usable.push_back(p.row);
  if (usable.empty())
    throw json::InputError(fmt::format("{}: of {} none can be compared with this cluster; gccl validate says why",
                                       problem.cluster_file.string(), counted(measured, "measured row")));
  const std::set<std::size_t> used = chosen(rows, usable, options.hold_out);
  RowIndices fit_rows(used.begin(), used.end()), held_out;
  for (const std::size_t i : usable)
    if (!used.count(i)) held_out.push_back(i);
  // Apart: what is fitted is chosen without what is held out, which shall not be rid of what does not follow it.
  fit_rows = without_outliers(rows, fit_rows, report.outliers);
  held_out = without_outliers(rows, held_out, report.held_out_outliers);
  usable = fit_rows;
  usable.insert(usable.end(), held_out.begin(), held_out.end());
  std::sort(usable.begin(), usable.end());

  const Parameters before = problem.parameters;
  problem.parameters.corrections.clear();
  report.left_out = leave_one_out(problem, before, usable, minimise, options);
  const Evaluated evaluated(problem, fit_rows);
  const std::vector<Adjustable> adjustables =
      sensitive(evaluated, problem.parameters, options.keep, report.undetermined);
  Parameters after = fitted(evaluated, problem.parameters, adjustables, minimise, options.evaluations_max);
  if (options.progress) options.progress(1, 1);
  for (const Adjustable& a : adjustables) {
    const double value = a.value(after);
    report.fitted.push_back({a.name(), a.value(before), value,
                             value >= a.most * (1 - kAtLimit) || (value > 0 && value <= a.least * (1 + kAtLimit))});
  }
  report.used = compared_by_scale(problem, fit_rows, before, after);
  report.all_used = compared(problem, "fitted", fit_rows, before, after);
  if (options.corrections) after.corrections = corrections_of(evaluated.corrected_points(after), report.corrections);
  report.held_out = compared_by_scale(problem, held_out, before, after);
  if (!held_out.empty()) report.all_held_out = compared(problem, "held out", held_out, before, after);
  problem.parameters = after;
  return report;
}

}  // namespace gccl::sim
