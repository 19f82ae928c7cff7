#include "sim/measured/diagnosis/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace gccl::sim {
namespace {

constexpr double kNoise = 0.05;
// Single-process hosts launch in some 23 us (github:waynehacking8/nccl-collectives-bench), of which NCCL's base latency
// of 6.6 to 14 us is in the protocols.
constexpr double kFixedUs[] = {0, 1, 2, 3, 5, 7, 10, 12, 15};
constexpr double kFactors[] = {0.8, 0.85, 0.9, 0.95, 1, 1.06, 1.12, 1.18, 1.25};
constexpr double kFreeFixedUs[] = {0, 100, 1000};
constexpr double kFreeFactors[] = {1.4, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100};

Explained explained(const std::vector<Observed>& points, const std::vector<double>& predicted, double extra_us,
                    double extra_factor) {
  std::map<std::size_t, std::size_t> members;
  for (const Observed& p : points) ++members[p.bin];
  const auto bins = double(members.size());
  Explained best;
  best.error = HUGE_VAL;
  for (const double fixed : kFixedUs)
    for (const double factor : kFactors) {
      Explained e{.fixed_us = fixed + extra_us, .factor = factor * extra_factor};
      for (std::size_t i = 0; i < points.size(); ++i)
        e.error += std::abs(std::log(points[i].us / e.us(predicted[i]))) / double(members[points[i].bin]);
      e.error /= bins;
      if (e.error < best.error) best = e;
    }
  const double width = std::max(kNoise, best.error);
  best.log_likelihood = -bins * (std::log(2 * width) + best.error / width);
  return best;
}

}  // namespace

Explained explain(const std::vector<Observed>& points, const std::vector<double>& predicted) {
  return explained(points, predicted, 0, 1);
}

std::vector<Explained> explain_freely(const std::vector<Observed>& points, const std::vector<double>& predicted) {
  std::vector<Explained> all;
  for (const double fixed : kFreeFixedUs)
    for (const double factor : kFreeFactors) all.push_back(explained(points, predicted, fixed, factor));
  return all;
}

double log_mean(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double v : values) sum += std::exp(v - most);
  return most + std::log(sum / double(values.size()));
}

std::vector<double> probabilities(const std::vector<double>& log_evidence) {
  const double most = *std::max_element(log_evidence.begin(), log_evidence.end());
  double sum = 0;
  for (const double v : log_evidence) sum += std::exp(v - most);
  std::vector<double> all;
  for (const double v : log_evidence) all.push_back(std::exp(v - most) / sum);
  return all;
}

}  // namespace gccl::sim
