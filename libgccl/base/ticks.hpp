// The processor's own counter: cheaper than a clock, for what happens at each call.
#pragma once

#include <cstdint>
#include <ctime>

#include "libgccl/base/clock.hpp"

namespace gccl {

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#else
  return std::uint64_t(now_ns());
#endif
}

// From ticks to the time of day, by the rate since this was made: good to microseconds after some milliseconds.
class TickClock {
 public:
  TickClock() : ticks_(ticks()), ns_(now_ns()) {}
  // In nanoseconds since 1970.
  std::int64_t unix_ns(std::uint64_t then) const {
    const std::uint64_t t = ticks();
    const std::int64_t now = now_ns();
    timespec day{};
    ::clock_gettime(CLOCK_REALTIME, &day);
    const double rate = t > ticks_ ? double(now - ns_) / double(t - ticks_) : 1;
    return std::int64_t(day.tv_sec) * 1'000'000'000 + day.tv_nsec - std::int64_t(double(t - then) * rate);
  }

 private:
  std::uint64_t ticks_;
  std::int64_t ns_;
};

}  // namespace gccl
