// A time that does not come: no deadline.
#pragma once

#include <limits>

#include "libgccl/schedule/types.hpp"

namespace gccl::fault {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

}  // namespace gccl::fault
