// The clock of timeouts, metrics and waits.
#pragma once

#include <chrono>
#include <cstdint>

namespace gccl {

constexpr std::int64_t kNsPerMs = 1'000'000;

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace gccl
