// From SimGrid's seconds to integer nanoseconds.
#pragma once

#include <cmath>

#include "sim/engine/time.hpp"

namespace gccl::sim {

// The nearest nanosecond. The limit between two of them lies 0.001 ns below the half: times of a simulation often are
// halves of nanoseconds, and the last bits of a double must not decide to which side such a time goes.
inline Nanos nearest(double seconds) {
  const double ns = std::floor(seconds * 1e9 + 0.501);
  if (!(ns < double(kTimeMax))) throw TimeOverflow();
  return Nanos(ns);
}

}  // namespace gccl::sim
