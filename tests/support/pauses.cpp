// Loaded into processes by LD_PRELOAD: each stands still at random moments, one of its threads at least, as on a busy
// machine. All that waits reads the clock again and again, so that is where.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "libgccl/base/splitmix.hpp"

namespace {

constexpr std::int64_t kNsPerMs = 1'000'000, kBetweenMaxNs = 600 * kNsPerMs, kPauseMaxNs = 300 * kNsPerMs;

int (*clock_of_c)(clockid_t, timespec*) = nullptr;
std::atomic<std::int64_t> next_ns{0};  // 0: not begun
std::atomic<bool> pausing{false};
std::uint64_t seed = 0;  // of the thread that pauses

std::int64_t now_ns() {
  timespec t;
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

std::int64_t up_to(std::int64_t most) {
  return std::int64_t(gccl::splitmix::mix(seed += gccl::splitmix::kGolden) % std::uint64_t(most));
}

void begin_anew() {
  seed = gccl::splitmix::hash(std::uint64_t(::getpid()) << 32 ^ std::uint64_t(now_ns()));
  next_ns = now_ns() + up_to(kBetweenMaxNs);
  pausing = false;
}

void pause_at_times() {
  const std::int64_t next = next_ns.load(std::memory_order_relaxed);
  if (next == 0 || now_ns() < next || pausing.exchange(true)) return;
  const timespec length{.tv_sec = 0, .tv_nsec = up_to(kPauseMaxNs)};
  ::syscall(SYS_nanosleep, &length, nullptr);
  next_ns = now_ns() + up_to(kBetweenMaxNs);
  pausing = false;
}

[[gnu::constructor]] void begin() {
  clock_of_c = reinterpret_cast<decltype(clock_of_c)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  ::pthread_atfork(nullptr, nullptr, begin_anew);
  begin_anew();
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* at) noexcept {
  pause_at_times();
  return clock_of_c ? clock_of_c(clock, at) : int(::syscall(SYS_clock_gettime, clock, at));
}
