// What a workload asks for cannot be simulated.
#pragma once

#include <stdexcept>

namespace gccl::sim {

// The workload is to blame, not the program: bad input.
struct WorkloadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Its messages carry more than a 64-bit number of bytes can say, such as 1 PiB for each of 16384 ranks.
struct BytesOverflow : WorkloadError {
  BytesOverflow() : WorkloadError("its messages would carry more than 2^64 bytes; take smaller sizes or fewer ranks") {}
};

}  // namespace gccl::sim
