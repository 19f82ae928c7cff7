// What a workload asks for cannot be simulated.
#pragma once

#include <stdexcept>

namespace gccl::sim {

// The workload is to blame, not the program: bad input.
struct WorkloadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace gccl::sim
