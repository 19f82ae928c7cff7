#include "sim/measured/calibration/line.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace gccl::sim {
namespace {

// A piece has at least so many sizes. Two are taken where one line errs by more than kOneGoodEnough and they leave less
// than kTwoBetter of that. Sizes that no line fits must not hide that the others fit two: each counts kErrorMost at
// most.
constexpr std::size_t kPieceSizes = 3;
constexpr double kOneGoodEnough = 0.03, kTwoBetter = 0.6, kErrorMost = 0.3;

double sum_of_errors(const Line& line, const std::vector<Timed>& points) {
  double sum = 0;
  for (const Timed& p : points) sum += std::abs(line(p.amount) / p.ns - 1);
  return sum;
}

double sum_of_bounded_errors(const Line& line, const std::vector<Timed>& points) {
  double sum = 0;
  for (const Timed& p : points) sum += std::min(std::abs(line(p.amount) / p.ns - 1), kErrorMost);
  return sum;
}

}  // namespace

double mean_error(const Line& line, const std::vector<Timed>& points) {
  return points.empty() ? 0 : sum_of_errors(line, points) / double(points.size());
}

Line fit_line(const std::vector<Timed>& points) {
  assert(!points.empty());
  Line best;
  double least = std::numeric_limits<double>::infinity();
  const auto try_line = [&](const Line& line) {
    if (!(line.fixed_ns >= 0 && line.ns_each >= 0)) return;
    if (const double sum = sum_of_errors(line, points); sum < least) least = sum, best = line;
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Timed& p = points[i];
    try_line({p.ns, 0});
    if (p.amount > 0) try_line({0, p.ns / p.amount});
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const Timed& q = points[j];
      if (p.amount == q.amount) continue;
      const double slope = (q.ns - p.ns) / (q.amount - p.amount);
      try_line({p.ns - slope * p.amount, slope});
    }
  }
  return best;
}

Pieces fit_pieces(const std::vector<Timed>& points) {
  const Line one = fit_line(points);
  Pieces best{one, one, std::nullopt};
  const double alone = sum_of_bounded_errors(one, points);
  if (alone <= kOneGoodEnough * double(points.size())) return best;
  double least = kTwoBetter * alone;
  for (std::size_t first = kPieceSizes; first + kPieceSizes <= points.size(); ++first) {
    const std::vector<Timed> low(points.begin(), points.begin() + std::ptrdiff_t(first));
    const std::vector<Timed> high(points.begin() + std::ptrdiff_t(first), points.end());
    const Line below = fit_line(low), above = fit_line(high);
    const double sum = sum_of_bounded_errors(below, low) + sum_of_bounded_errors(above, high);
    if (sum < least) least = sum, best = {below, above, low.back().amount};
  }
  return best;
}

}  // namespace gccl::sim
