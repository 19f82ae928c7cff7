// From SimGrid's seconds to integer nanoseconds.
#pragma once

#include "sim/engine/time.hpp"

namespace gccl::sim {

// 2^22 s, 48 days. SimGrid's clock is a double: beyond, its numbers come to lie further apart than nanoseconds, and it
// may never reach the instant that it is asked for.
constexpr Nanos kClockMax = (Nanos(1) << 22) * 1'000'000'000;

struct ClockOverflow : WorkloadError {
  ClockOverflow()
      : WorkloadError(
            "it would take more than 2^22 s (48 days), the most for which SimGrid's clock resolves nanoseconds; "
            "take smaller sizes, faster links or the model engine") {}
};

inline Nanos nearest(double seconds) { return nearest_ns(seconds * 1e9); }

}  // namespace gccl::sim
