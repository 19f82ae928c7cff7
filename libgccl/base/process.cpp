#include "libgccl/base/process.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "libgccl/base/no_destructor.hpp"

namespace gccl {

std::atomic<bool> forked_child{false};

namespace {

// One bit for each descriptor. Linux allows a process 2^20 of them unless its administrator raises fs.nr_open; those
// beyond are not looked after. Only the pages that are used take memory.
constexpr std::size_t kDescriptors = std::size_t(1) << 20;
std::array<std::atomic<std::uint64_t>, kDescriptors / 64> kept;
std::atomic<std::size_t> words_used{0};
std::atomic<int> users{0};
std::atomic<int> own_threads{0};

std::mutex& process_mutex() {
  static NoDestructor<std::mutex> mutex;
  return *mutex;
}
// By this thread. A recursive mutex would not do: in the child that has forked, the thread has another number.
thread_local int locks_held = 0;

std::uint64_t bit(int fd) { return std::uint64_t(1) << (unsigned(fd) % 64); }
bool in_range(int fd) { return fd >= 0 && std::size_t(fd) < kDescriptors; }

void before_fork() {
  process_mutex().lock();
  end_without_jump();
}
void in_parent() {
  process_mutex().unlock();
  end_without_jump();
}
void in_child() {
  for (std::size_t w = 0; w < words_used.load(std::memory_order_relaxed); ++w)
    for (std::uint64_t left = kept[w].exchange(0, std::memory_order_relaxed); left != 0; left &= left - 1)
      ::close(int(w * 64 + std::size_t(__builtin_ctzll(left))));
  if (users.load(std::memory_order_relaxed) > 0) forked_child.store(true, std::memory_order_relaxed);
  process_mutex().unlock();
  end_without_jump();
}

// When the library is loaded: fork() runs the handlers that came last first, and a thread that holds a lock which a
// later one takes may be waiting for ours. It fails when memory is short alone: then children keep descriptors, as
// those of other programs do.
[[maybe_unused]] const int registered = ::pthread_atfork(before_fork, in_parent, in_child);

}  // namespace

ProcessLock::ProcessLock() {
  if (locks_held++ == 0) process_mutex().lock();
}

ProcessLock::~ProcessLock() {
  if (--locks_held == 0) process_mutex().unlock();
  end_without_jump();
}

void keep_from_children(int fd) {
  if (!in_range(fd)) return;
  const std::size_t word = std::size_t(fd) / 64;
  kept[word].fetch_or(bit(fd), std::memory_order_relaxed);
  std::size_t used = words_used.load(std::memory_order_relaxed);
  while (used <= word && !words_used.compare_exchange_weak(used, word + 1, std::memory_order_relaxed)) {
  }
}

void forget_descriptor(int fd) {
  if (!in_range(fd)) return;
  std::atomic<std::uint64_t>& word = kept[std::size_t(fd) / 64];
  if (word.load(std::memory_order_relaxed) & bit(fd)) word.fetch_and(~bit(fd), std::memory_order_relaxed);
}

void close_descriptor(int fd) {
  std::optional<ProcessLock> lock;
  if (in_range(fd) && (kept[std::size_t(fd) / 64].load(std::memory_order_relaxed) & bit(fd))) lock.emplace();
  forget_descriptor(fd);
  ::close(fd);  // Linux has closed it even when this reports EINTR
}

InUse::InUse() { users.fetch_add(1, std::memory_order_relaxed); }

InUse::~InUse() { users.fetch_sub(1, std::memory_order_relaxed); }

// Linux lists it before it first runs, on a busy machine long before: so the thread that starts it counts it, and
// one_thread() does not look meanwhile.
std::thread own_thread(std::function<void()> body) {
  const ProcessLock lock;
  std::thread thread([body = std::move(body)] {
    body();
    own_threads.fetch_sub(1, std::memory_order_relaxed);
  });
  own_threads.fetch_add(1, std::memory_order_relaxed);
  return thread;
}

bool one_thread() {
  const ProcessLock lock;
  struct ::stat tasks;
  if (::stat("/proc/self/task", &tasks) != 0) return false;
  const auto threads = static_cast<int>(tasks.st_nlink) - 2;  // Linux: two, and one for each
  return threads - own_threads.load(std::memory_order_relaxed) == 1;
}

}  // namespace gccl
