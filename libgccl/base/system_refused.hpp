// What the machine does not grant.
#pragma once

#include <stdexcept>

namespace gccl {

// The machine refuses what a command needs (descriptors, processes, memory, a permission): neither the program nor its
// input is to blame.
struct SystemRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace gccl
