#include "sim/measured/validation/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace gccl::sim {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = q * double(values.size() - 1);
  const auto below = std::size_t(place);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (place - double(below)) * (values[below + 1] - values[below]);
}

ErrorStatistics statistics_of(std::vector<double> errors) {
  ErrorStatistics s{.points = errors.size()};
  if (errors.empty()) return s;
  s.bias = quantile(errors, 0.5);
  for (double& e : errors) s.mape += e = std::abs(e);
  s.mape /= double(errors.size());
  s.median = quantile(errors, 0.5);
  s.p90 = quantile(errors, 0.9);
  s.worst = quantile(errors, 1);
  return s;
}

std::string_view size_class(Count bytes) {
  if (bytes < 32u << 10) return "< 32 KiB";
  if (bytes < 1u << 20) return "< 1 MiB";
  return bytes < 64u << 20 ? "< 64 MiB" : ">= 64 MiB";
}

}  // namespace gccl::sim
