// The range of virtual time.
#pragma once

#include <cmath>

#include "libgccl/schedule/types.hpp"
#include "sim/engine/workload_error.hpp"

namespace gccl::sim {

// 2^60 ns, 36 years. Sums of two times below it cannot overflow.
constexpr Nanos kTimeMax = Nanos(1) << 60;

// The workload takes longer than virtual time lasts, such as 1 PiB over 1 KB/s.
struct TimeOverflow : WorkloadError {
  TimeOverflow() : WorkloadError("it would take more than 2^60 ns (36 years); take smaller sizes or faster links") {}
};

// The nearest nanosecond.
inline Nanos duration(double ns) {
  if (!(ns < double(kTimeMax))) throw TimeOverflow();
  return Nanos(ns + 0.5);
}

// The nearest nanosecond of a flow's end. The limit between two of them lies 0.001 ns below the half: times of a
// simulation often are halves of nanoseconds, and the last bits of a double must not decide to which side such a time
// goes.
inline Nanos nearest_ns(double ns) {
  const double whole = std::floor(ns + 0.501);
  if (!(whole < double(kTimeMax))) throw TimeOverflow();
  return Nanos(whole);
}

}  // namespace gccl::sim
