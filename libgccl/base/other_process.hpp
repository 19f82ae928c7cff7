// Another process of this machine: whether it is still there.
#pragma once

#include <cstdint>

namespace gccl {

// Process numbers are used again; a number and the time at which the process began are not.
struct OtherProcess {
  std::int32_t pid = 0;
  std::uint64_t began = 0;  // in ticks since the machine did; 0: the system does not say

  static OtherProcess me();
  enum class State : std::uint8_t { runs, stopped, ended };
  // Of one of the same process-id namespace. As `ended` counts one that nobody has waited for yet.
  State state() const;
  // A descriptor that becomes readable when it ends, or -1 (it has ended, or the system has none).
  int open_watch() const;
};

}  // namespace gccl
