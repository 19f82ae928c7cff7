// Medians and other quantiles of what was measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gccl::sim {

// q of 0 to 1 between the least and the greatest, interpolated linearly between the two nearest; 0 where there is none.
inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = q * double(values.size() - 1);
  const auto below = std::size_t(place);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (place - double(below)) * (values[below + 1] - values[below]);
}

}  // namespace gccl::sim
