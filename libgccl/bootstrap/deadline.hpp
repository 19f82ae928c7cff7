// A moment that must not be passed.
#pragma once

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>

namespace gccl {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline in_ms(std::int64_t ms) {
    constexpr std::int64_t kMsMax = std::int64_t(1000) * 86400 * 365;  // far enough, and no overflow
    return Deadline(Clock::now() + std::chrono::milliseconds(std::clamp<std::int64_t>(ms, 0, kMsMax)));
  }
  // Rounded up: a wait of this length ends at or after the deadline. 0 once it has passed.
  std::int64_t left_ms() const {
    return std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count());
  }
  int poll_ms() const { return int(std::min<std::int64_t>(left_ms(), INT_MAX)); }
  bool passed() const { return Clock::now() >= at_; }
  Deadline earlier(Deadline other) const { return Deadline(std::min(at_, other.at_)); }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace gccl
