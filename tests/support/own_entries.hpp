// What this process holds of the system: "fd" for its descriptors, "task" for its threads. Linux lists a thread for a
// moment longer than it takes to join it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

namespace gccl::test {

inline std::size_t own(const std::string& what) {
  return std::size_t(
      std::distance(std::filesystem::directory_iterator("/proc/self/" + what), std::filesystem::directory_iterator()));
}

// How many there are once those that have just ended are gone.
inline std::size_t own_at_rest(const std::string& what) {
  std::size_t least = own(what);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    least = std::min(least, own(what));
  }
  return least;
}

// The thread sanitizer starts a thread of its own with the first that a process starts, or two where that was forked.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kSanitizerThreads = true;
#else
inline constexpr bool kSanitizerThreads = false;
#endif

// Threads of this process where it has none of its own but the first; asked for before it starts others.
inline std::size_t first_threads() {
  if (!kSanitizerThreads) return 1;
  static const std::size_t threads = [] {
    std::thread([] {}).join();
    return own_at_rest("task");
  }();
  return threads;
}

// Whether there are so many, at once or soon.
inline bool comes_to(const std::string& what, std::size_t n) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (own(what) != n && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return own(what) == n;
}

}  // namespace gccl::test
