#include "sim/measured/calibration/curve.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <random>

namespace gccl::sim {
namespace {

constexpr int kResamples = 200;
// A sample of more than so many times the fastest one was a scheduler's turn and no message. On a busy machine most may
// be, and a median of all would be of them.
constexpr double kTurn = 5;
constexpr double kNormal95 = 1.96;

double middle(std::vector<double>& values) {
  const std::size_t half = values.size() / 2;
  const auto at = values.begin() + std::ptrdiff_t(half);
  std::nth_element(values.begin(), at, values.end());
  if (values.size() % 2) return *at;
  return (*at + *std::max_element(values.begin(), at)) / 2;
}

// The values that 2.5 % of all are below, and above.
Estimate around(double value, std::vector<double> all) {
  std::sort(all.begin(), all.end());
  const auto cut = std::size_t(0.025 * double(all.size()));
  return {value, std::min(value, all[cut]), std::max(value, all[all.size() - 1 - cut])};
}

std::vector<double> up_to(double most, const std::vector<double>& samples) {
  std::vector<double> kept;
  for (const double ns : samples)
    if (ns <= most) kept.push_back(ns);
  return kept;
}

// std::uniform_int_distribution differs between standard libraries.
std::size_t draw(std::mt19937_64& random, std::size_t below) { return std::size_t(random() % below); }

}  // namespace

Estimate median_of(std::vector<double> samples) {
  assert(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const auto n = double(samples.size());
  const double half = kNormal95 * std::sqrt(n) / 2;
  const auto at = [&](double rank) { return samples[std::size_t(std::clamp(rank, 0.0, n - 1))]; };
  Estimate e{.least = at(std::floor(n / 2 - half)), .most = at(std::ceil(n / 2 + half))};
  e.value = middle(samples);
  return e;
}

double time_of(const std::vector<double>& samples) {
  return median_of(up_to(kTurn * *std::min_element(samples.begin(), samples.end()), samples)).value;
}

CurveFit fit_curve(const Curve& curve) {
  assert(!curve.empty());
  CurveFit fit;
  std::vector<Timed> medians;
  std::vector<double> most;  // by amount
  for (std::size_t s = 0; s < curve.amounts.size(); ++s) {
    const double fastest = *std::min_element(curve.ns[s].begin(), curve.ns[s].end());
    most.push_back(curve.differences ? std::numeric_limits<double>::infinity() : kTurn * fastest);
    CurveFit::Row row{.amount = curve.amounts[s], .median_ns = median_of(up_to(most[s], curve.ns[s]))};
    const auto far =
        std::count_if(curve.ns[s].begin(), curve.ns[s].end(), [&](double ns) { return ns > 2 * row.median_ns.value; });
    row.outliers = double(far) / double(curve.ns[s].size());
    medians.push_back({row.amount, row.median_ns.value});
    fit.rows.push_back(row);
  }
  fit.line = fit_line(medians);
  fit.pieces = fit_pieces(medians);
  for (CurveFit::Row& row : fit.rows) {
    row.line_ns = fit.line(row.amount);
    row.pieces_ns = fit.pieces(row.amount);
    fit.line_error += std::abs(row.line_ns / row.median_ns.value - 1) / double(fit.rows.size());
    fit.pieces_error += std::abs(row.pieces_ns / row.median_ns.value - 1) / double(fit.rows.size());
  }

  std::mt19937_64 random(1);
  const std::size_t rounds = curve.ns[0].size();
  std::vector<double> fixed, slope, drawn;
  std::vector<std::size_t> chosen(rounds);
  for (int i = 0; i < kResamples; ++i) {
    for (std::size_t& r : chosen) r = draw(random, rounds);
    for (std::size_t s = 0; s < medians.size(); ++s) {
      drawn.clear();
      for (const std::size_t r : chosen) drawn.push_back(curve.ns[s][r]);
      drawn = up_to(most[s], drawn);
      if (!drawn.empty()) medians[s].ns = middle(drawn);
    }
    const Line line = fit_line(medians);
    fixed.push_back(line.fixed_ns);
    slope.push_back(line.ns_each);
  }
  fit.fixed_ns = around(fit.line.fixed_ns, std::move(fixed));
  fit.ns_each = around(fit.line.ns_each, std::move(slope));
  return fit;
}

}  // namespace gccl::sim
