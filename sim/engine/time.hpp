// The range of virtual time.
#pragma once

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

}  // namespace gccl::sim
