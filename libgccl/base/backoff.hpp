// How to wait: spinning while what it waits for may be microseconds away, giving up the processor to those who need it.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gccl {

// One wait. With more ranks than processors on the machine a spinning rank holds up the very one it waits for: the
// scheduler would only notice at its next tick, up to 4 ms later.
class Backoff {
 public:
  explicit Backoff(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  // Call after each look that found nothing. True now and then, when the clock may be looked at. `far`: what is waited
  // for comes over a network. Such a look asks the operating system, takes as long as a hundred others and waits for
  // longer: nobody knows who else needs this machine's processors meanwhile. Spinning on was as fast on an idle
  // machine, and took three times as long where others needed the processors (four network namespaces on two cores).
  bool pause(bool far = false) {
    ++looks_;
    const bool yields = oversubscribed_ ? looks_ % 3 == 0
                        : far           ? looks_ > kFarLooks
                                        : looks_ > kLooks && looks_ % 16 == 0;
    if (yields) {
      ++yields_;
      if (looks_ > (far ? kFarLooksAwake : kLooksAwake)) {
        sleep();
        return true;
      }
      ::sched_yield();
      return yields_ % 64 == 0;
    }
#if defined(__x86_64__)
    // A pause lasts as long as a message between cores: not while one may be on its way.
    if (looks_ > 2000) _mm_pause();
#endif
    return looks_ % 4096 == 0;
  }
  // Something moved.
  void reset() { looks_ = slept_us_ = 0; }
  std::uint64_t yields() const { return yields_; }

 private:
  // The longer the wait so far, the longer, up to half a millisecond: its end is seen late by a thousandth of
  // it, and a rank that waits for one that computes leaves it the processor.
  void sleep() {
    const std::uint32_t us = std::min<std::uint32_t>(20 + slept_us_ / 1000, 500);
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    if (us < 500) slept_us_ += us;
  }

  // Before the first yield, and before the first sleep: 1 and 20 ms; of far ones 50 us and 10 ms.
  static constexpr std::uint32_t kLooks = 30000, kLooksAwake = 400000, kFarLooks = 100, kFarLooksAwake = 10000;

  bool oversubscribed_;
  std::uint32_t looks_ = 0, slept_us_ = 0;
  std::uint64_t yields_ = 0;
};

}  // namespace gccl
