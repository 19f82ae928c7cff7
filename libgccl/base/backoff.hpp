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

// What a poll of what is in flight found: nothing new; bytes of a long message, alone; or that something is complete.
enum class Progress : std::uint8_t { nothing, bytes, something };

// One wait. With more ranks than processors on the machine a spinning rank holds up the very one it waits for: the
// scheduler would only notice at its next tick, up to 4 ms later.
class Backoff {
 public:
  explicit Backoff(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  // Call after each poll that found nothing. True now and then, when the clock may be read. `far`: what is waited
  // for comes over a network. Such a poll asks the operating system, takes as long as a hundred others and waits for
  // longer: nobody knows who else needs this machine's processors meanwhile. Spinning on was as fast on an idle
  // machine, and took three times as long where others needed the processors (four network namespaces on two cores).
  bool pause(bool far = false) {
    ++polls_;
    const bool yields = oversubscribed_ ? polls_ % 3 == 0
                        : far           ? polls_ > kFarPolls
                                        : polls_ > kPolls && polls_ % 16 == 0;
    if (yields) {
      ++yields_;
      if (!awake_) {
        sleep();
        return true;
      }
      ::sched_yield();
      if (yields_ % kYieldsPerClock == 0) awake_ = !waited_long(far);
      return yields_ % 64 == 0;
    }
#if defined(__x86_64__)
    // A pause lasts as long as a message between cores: not while one may be on its way.
    if (polls_ > 2000) _mm_pause();
#endif
    return polls_ % 4096 == 0;
  }
  // Something is complete, and the next wait begins.
  void reset() {
    polls_ = 0;
    stay_awake();
  }
  // What is waited for is on its way.
  void stay_awake() {
    slept_us_ = 0;
    awake_ = true;
    began_ = {};
  }
  // After each poll of a thread that does nothing else: one of the above, or a pause, and then what that returns.
  bool after(Progress made) {
    if (made == Progress::something) return reset(), false;
    if (made == Progress::bytes) stay_awake();
    return pause();
  }
  std::uint64_t yields() const { return yields_; }

 private:
  using Clock = std::chrono::steady_clock;

  // By the clock, since where others need the processors a yield takes milliseconds, and thousands of them as long as
  // the wait: ranks that waited for one another and for a failure to be noticed took two thirds of the processors from
  // those that worked.
  bool waited_long(bool far) {
    const Clock::time_point now = Clock::now();
    if (began_ == Clock::time_point()) began_ = now;
    return now - began_ > (oversubscribed_ ? kOversubscribedAwake : far ? kFarAwake : kAwake);
  }

  // The longer the wait so far, the longer: its end is seen late by a thousandth of it, and a rank that waits for one
  // that computes leaves it the processor. With more ranks than processors by a hundredth: each time it wakes it takes
  // a processor from a rank that may be the one it waits for.
  void sleep() {
    const std::uint32_t us =
        std::min<std::uint32_t>(oversubscribed_ ? 40 + slept_us_ / 100 : 20 + slept_us_ / 1000, kSleepUsMax);
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    if (us < kSleepUsMax) slept_us_ += us;
  }

  // Before the first yield: 1 ms, of far ones 50 us. From there to the first sleep: 20 and 10 ms, and 4 with more ranks
  // than processors, as long as the scheduler lets a rank compute before it looks for others.
  static constexpr std::uint32_t kPolls = 30000, kFarPolls = 100, kYieldsPerClock = 8;
  static constexpr std::chrono::milliseconds kAwake{20}, kFarAwake{10}, kOversubscribedAwake{4};
  static constexpr std::uint32_t kSleepUsMax = 2000;

  bool oversubscribed_, awake_ = true;
  std::uint32_t polls_ = 0, slept_us_ = 0;
  std::uint64_t yields_ = 0;
  Clock::time_point began_;  // when the clock was first read; zero before
};

}  // namespace gccl
