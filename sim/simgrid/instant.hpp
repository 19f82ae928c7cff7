// From SimGrid's seconds to integer nanoseconds.
#pragma once

#include <cmath>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

// The nearest nanosecond. The limit between two of them lies 0.001 ns below the half: times of a simulation often are
// halves of nanoseconds, and the last bits of a double must not decide to which side such a time goes.
inline Nanos nearest(double seconds) { return Nanos(std::floor(seconds * 1e9 + 0.501)); }

}  // namespace gccl::sim
