#include "sim/measured/diagnosis/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "libgccl/schedule/definition.hpp"
#include "sim/measured/diagnosis/evidence.hpp"
#include "sim/measured/predict/algorithm_names.hpp"
#include "sim/measured/predict/predict.hpp"
#include "sim/measured/quantile.hpp"
#include "sim/measured/validation/outliers.hpp"
#include "sim/measured/validation/validation.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// A cause whose predictions are this near to a healthy cluster's everywhere would not show.
constexpr double kVisible = 0.02;

using Times = std::vector<double>;  // of each measured row; NaN where there is none

Times predicted(const std::vector<Measurement>& rows, const Variant& variant, const std::filesystem::path& file,
                std::vector<SkippedRow>& skipped) {
  std::vector<Measurement> asked = rows;
  if (!variant.algorithm.empty())
    for (Measurement& m : asked)
      if (measured_algorithm(m.kind, m.algorithm).automatic && find_algorithm(m.kind, variant.algorithm))
        m.algorithm = named_alike(m.kind, variant.algorithm, m.algorithm);
  Times us(rows.size(), NAN);
  const MeasuredPoints points(asked, variant.cluster, file, skipped, variant.planner);
  for (const Predicted& p : points.closed(variant.cluster, &skipped)) us[p.row] = p.us;
  return us;
}

struct Predictions {
  const Hypothesis* hypothesis;
  std::vector<Times> variants;
};

std::vector<Predictions> predict_all(const std::vector<Hypothesis>& hypotheses, const std::vector<Measurement>& rows,
                                     const std::filesystem::path& file, std::vector<SkippedRow>& skipped,
                                     const DiagnosisProgress& progress) {
  std::vector<Predictions> all;
  std::size_t done = 0, of = 0;
  for (const Hypothesis& h : hypotheses) of += h.variants.size();
  for (const Hypothesis& h : hypotheses) {
    Predictions& p = all.emplace_back(Predictions{&h, {}});
    for (const Variant& v : h.variants) {
      std::vector<SkippedRow> ignored;
      const bool first = all.size() == 1 && p.variants.empty();
      p.variants.push_back(predicted(rows, v, file, first ? skipped : ignored));
      if (progress) progress(++done, of);
      // What the variant does not reach is as on a healthy cluster.
      if (all.size() > 1)
        for (std::size_t i = 0; i < rows.size(); ++i)
          if (std::isnan(p.variants.back()[i])) p.variants.back()[i] = all[0].variants[v.model][i];
    }
  }
  return all;
}

using MeasuredCurve = std::tuple<Collective, Rank, Rank, std::string>;

MeasuredCurve curve_of(const Measurement& m) { return {m.kind, m.nodes, m.cards, m.algorithm + "," + m.protocol}; }

// What is diagnosed by itself: a system, a kind of note, and which of the tests of the same calls.
using Subject = std::tuple<std::string, std::string, std::size_t>;

// A test that repeats calls of another is of other machines, or of the same ones in another state. It is no evidence of
// the first one's, so it goes with the next tests of other calls, if any, into a diagnosis of its own.
std::vector<Subject> subjects_of(const std::vector<Measurement>& rows) {
  using Test = std::pair<std::string, std::size_t>;  // file, and which of its tests
  const auto test_of = [](const Measurement& m) { return Test{m.at.file, m.test}; };
  std::vector<Subject> subjects;
  std::map<std::tuple<Subject, MeasuredCurve, Count>, std::set<Test>> tests;
  std::map<std::pair<Subject, Test>, std::size_t> turns;  // how many of the same calls come before
  for (const Measurement& m : rows) {
    const Subject& first = subjects.emplace_back(m.system, kind_of_note(m.note), 0);
    std::set<Test>& same = tests[{first, curve_of(m), m.bytes}];
    if (!same.insert(test_of(m)).second) continue;
    std::size_t& turn = turns[{first, test_of(m)}];
    turn = std::max(turn, same.size() - 1);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) std::get<2>(subjects[i]) = turns[{subjects[i], test_of(rows[i])}];
  return subjects;
}

// The points of one diagnosis.
struct Group {
  std::vector<std::size_t> rows, used;                        // used: those that are no outliers
  std::vector<Observed> points;                               // of the used ones
  std::map<std::pair<MeasuredCurve, int>, std::size_t> bins;  // of a curve and a power of four; of all rows
  std::vector<std::size_t> bin;                               // of each row

  std::size_t observations() const {
    std::set<std::size_t> seen;
    for (const Observed& p : points) seen.insert(p.bin);
    return seen.size();
  }
  Times of(const Times& all) const {
    Times some;
    for (const std::size_t i : used) some.push_back(all[i]);
    return some;
  }
};

Group group_of(std::vector<std::size_t> members, const std::vector<Measurement>& rows,
               const std::vector<std::string>& outliers) {
  Group g;
  g.rows = std::move(members);
  for (const std::size_t i : g.rows) {
    const Measurement& m = rows[i];
    const auto bin = g.bins.try_emplace({curve_of(m), std::ilogb(double(m.bytes)) / 2}, g.bins.size()).first->second;
    g.bin.push_back(bin);
    if (!outliers[i].empty()) continue;
    g.used.push_back(i);
    g.points.push_back({m.time_us, bin});
  }
  return g;
}

struct Ranked {
  const Hypothesis* hypothesis;
  std::string detail;
  std::size_t model;  // of the healthy cluster
  Explained best;
  double log_evidence, probability;
};

bool visible(const Times& healthy, const Times& other) {
  for (std::size_t i = 0; i < healthy.size(); ++i)
    if (std::abs(std::log(other[i] / healthy[i])) > kVisible) return true;
  return false;
}

const Hypothesis& unknown_cause() {
  static const Hypothesis unknown{"unknown", "something else", "", {}};
  return unknown;
}

// The most likely first.
std::vector<Ranked> ranked(const Group& group, const std::vector<Predictions>& predictions) {
  std::vector<Ranked> all;
  struct Tried {
    std::string detail;
    std::size_t model;
    Explained explained;
  };
  const auto add = [&](const Hypothesis* h, const std::vector<Tried>& tried) {
    std::vector<double> log_likelihoods;
    for (const Tried& t : tried) log_likelihoods.push_back(t.explained.log_likelihood);
    const Tried& best =
        tried[std::size_t(std::max_element(log_likelihoods.begin(), log_likelihoods.end()) - log_likelihoods.begin())];
    all.push_back({h, best.detail, best.model, best.explained, log_mean(log_likelihoods), 0});
  };
  std::vector<Times> healthy;
  for (const Times& us : predictions[0].variants) healthy.push_back(group.of(us));
  for (const Predictions& p : predictions) {
    std::vector<Tried> tried;
    for (std::size_t v = 0; v < p.variants.size(); ++v) {
      const Variant& variant = p.hypothesis->variants[v];
      const Times us = group.of(p.variants[v]);
      if (&p != &predictions[0] && !visible(healthy[variant.model], us)) continue;
      tried.push_back({variant.detail, variant.model, explain(group.points, us)});
    }
    if (!tried.empty()) add(p.hypothesis, tried);
  }
  std::vector<Tried> freely;
  for (std::size_t model = 0; model < healthy.size(); ++model)
    for (const Explained& e : explain_freely(group.points, healthy[model])) freely.push_back({"", model, e});
  add(&unknown_cause(), freely);
  std::vector<double> evidence;
  for (const Ranked& r : all) evidence.push_back(r.log_evidence);
  const std::vector<double> probability = probabilities(evidence);
  for (std::size_t k = 0; k < all.size(); ++k) all[k].probability = probability[k];
  std::stable_sort(all.begin(), all.end(),
                   [](const Ranked& a, const Ranked& b) { return a.log_evidence > b.log_evidence; });
  return all;
}

const Ranked& of(const std::vector<Ranked>& causes, std::string_view name) {
  return *std::find_if(causes.begin(), causes.end(), [&](const Ranked& r) { return r.hypothesis->name == name; });
}

double bus_GBps(const Measurement& m, double us) {
  return us > 0 ? bus_factor(m.kind, m.ranks()) * double(m.bytes) / us / 1e3 : 0;
}

struct Shortfall {
  double share = 0;      // of the observations
  bool longest = false;  // the two longest observations of some curve
  bool any() const { return share >= kShortShare || longest; }
};

// ratio: of each row's bandwidth to the expected one. What is far slower than what lies beside it is short, too: a
// cliff at the end of a curve would be. What is far faster says nothing of the others.
Shortfall shortfall(const Group& group, const Times& ratio, const std::vector<std::string>& outliers) {
  std::vector<std::vector<double>> ratios(group.bins.size());
  for (std::size_t k = 0; k < ratio.size(); ++k)
    if (outliers[group.rows[k]].empty() || ratio[k] < 1) ratios[group.bin[k]].push_back(ratio[k]);
  Shortfall found;
  double observations = 0;
  std::map<MeasuredCurve, std::vector<bool>> curves;  // shortest first
  for (const auto& [place, bin] : group.bins) {
    if (ratios[bin].empty()) continue;
    ++observations;
    const bool is_short = quantile(ratios[bin], 0.5) < kShort;
    curves[place.first].push_back(is_short);
    found.share += is_short;
  }
  found.share /= std::max(observations, 1.0);
  for (const auto& [curve, is_short] : curves)
    found.longest |= is_short.size() > 1 && is_short.back() && is_short[is_short.size() - 2];
  return found;
}

Json diagnosed(const Group& group, const std::vector<Measurement>& rows, const std::vector<Predictions>& predictions,
               const std::vector<std::string>& outliers) {
  const std::vector<Ranked> causes = ranked(group, predictions);
  const Ranked &first = causes.front(), &healthy = of(causes, "healthy");
  const std::size_t observations = group.observations();
  const bool ill = observations >= kObservationsMin && first.probability >= kNamed * healthy.probability &&
                   first.best.error <= kErrorLeft * healthy.best.error;
  // What calls cost besides the network is taken from the explanation that holds, so that a shortfall neither hides in
  // it nor is made of noise by what a cause that hardly fits better adjusts.
  const Ranked& holds = ill ? first : healthy;
  Explained expectation = holds.best;
  if (holds.hypothesis->name == "unknown") expectation = {};
  // Nothing was seen to be faster than its links: a cluster that is ill has shown no better ones.
  if (ill) expectation.factor = std::max(expectation.factor, 1.0);
  const auto expected_us = [&](std::size_t row) { return expectation.us(predictions[0].variants[holds.model][row]); };
  Times ratio, ratio_used;
  for (const std::size_t i : group.rows) ratio.push_back(expected_us(i) / rows[i].time_us);
  for (const std::size_t i : group.used) ratio_used.push_back(expected_us(i) / rows[i].time_us);
  const Shortfall found = shortfall(group, ratio, outliers);
  const bool named = ill && first.probability >= kNamed * of(causes, "unknown").probability;
  const Measurement& any = rows[group.rows.front()];
  Json table = Json::array(), list = Json::array();
  for (const std::size_t i : group.rows) {
    const Measurement& m = rows[i];
    const double us = expected_us(i);
    table.push_back({{"nodes", m.nodes},
                     {"gpus_per_node", m.cards},
                     {"collective", m.collective},
                     {"algorithm", m.algorithm},
                     {"bytes", m.bytes},
                     {"found_us", m.time_us},
                     {"expected_us", us},
                     {"found_busbw_GBps", bus_GBps(m, m.time_us)},
                     {"expected_busbw_GBps", bus_GBps(m, us)},
                     {"ratio", us / m.time_us},
                     {"outlier", !outliers[i].empty()},
                     {"file", m.at.file},
                     {"line", m.at.line}});
  }
  for (const Ranked& r : causes)
    list.push_back({{"cause", r.hypothesis->name},
                    {"title", r.hypothesis->title},
                    {"detail", r.detail},
                    {"error_percent", 100 * std::expm1(r.best.error)},
                    {"probability", r.probability},
                    {"fixed_us", r.best.fixed_us},
                    {"factor", r.best.factor},
                    {"check", r.hypothesis->check}});
  const std::string verdict = found.any()                                       ? named ? "explained" : "unexplained"
                              : quantile(std::move(ratio_used), 0.5) > kTooFast ? "implausible"
                                                                                : "healthy";
  return {{"system", any.system},
          {"note", any.note},
          {"verdict", verdict},
          {"cause", verdict == "explained" ? Json(first.hypothesis->name) : Json()},
          {"probability", first.probability},
          {"short_share", found.share},
          {"observations", observations},
          {"hypotheses", std::move(list)},
          {"rows", std::move(table)}};
}

}  // namespace

Json diagnosis(Measured& measured, const std::filesystem::path& file, const json::Node& description,
               const Parameters& parameters, const DiagnosedWith& with, const DiagnosisProgress& progress) {
  const std::vector<Measurement>& rows = measured.rows;
  const std::vector<Hypothesis> hypotheses = hypotheses_of(description, parameters, rows);
  const std::vector<Predictions> predictions = predict_all(hypotheses, rows, file, measured.skipped, progress);
  const std::vector<std::string> outliers = outliers_of(rows);
  const std::vector<Subject> subjects = subjects_of(rows);
  std::map<Subject, std::size_t> place;
  std::vector<std::vector<std::size_t>> groups;  // in the order of the files
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::isnan(predictions[0].variants[0][i])) continue;  // said already
    if (rows[i].bytes == 0) {
      measured.skipped.push_back({rows[i].at, "a barrier, which has no bandwidth"});
      continue;
    }
    const auto [at, fresh] = place.try_emplace(subjects[i], groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(i);
  }
  Json diagnoses = Json::array();
  for (std::vector<std::size_t>& members : groups)
    diagnoses.push_back(diagnosed(group_of(std::move(members), rows, outliers), rows, predictions, outliers));
  return {{"schema", "gccl/diagnosis/1"},
          {"version", GCCL_VERSION_TEXT},
          {"cluster", {{"name", with.cluster}, {"file", with.cluster_file}}},
          {"parameters", with.parameters.empty() ? Json() : Json(with.parameters)},
          {"skipped", skipped_json(measured.skipped)},
          {"remarks", measured.remarks},
          {"diagnoses", std::move(diagnoses)}};
}

}  // namespace gccl::sim
