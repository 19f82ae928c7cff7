#include "sim/measured/validation/statistics.hpp"

#include <cmath>

#include "sim/measured/quantile.hpp"

namespace gccl::sim {

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
