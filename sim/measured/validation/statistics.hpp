// How far predictions are from measurements.
#pragma once

#include <string_view>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

// Statistics of errors in percent of the measured time, (predicted / measured - 1) x 100.
struct ErrorStatistics {
  std::size_t points = 0;
  double mape = 0;    // the mean of the absolute errors
  double median = 0;  // and their quantiles, interpolated linearly between the two nearest ranks
  double p90 = 0;
  double worst = 0;
  double bias = 0;  // the median of the errors with their signs: below 0 where predictions are too fast
};
ErrorStatistics statistics_of(std::vector<double> errors_percent);

// "< 32 KiB", "< 1 MiB", "< 64 MiB" or ">= 64 MiB".
std::string_view size_class(Count bytes);

}  // namespace gccl::sim
