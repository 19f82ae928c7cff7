#include "pmpi/background.hpp"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "gccl/gccl.h"
#include "pmpi/progress.hpp"

namespace gccl::pmpi::background {
namespace {

constexpr auto kInterval = std::chrono::microseconds(500);
constexpr int kIdleLooks = 200;  // then it sleeps: a program that never calls us again pays nothing

std::atomic<bool> was_here{false}, asleep{true};
std::atomic<int> users{0};
std::mutex mutex;
std::condition_variable wake;
std::thread thread;
bool stopping = false;

void loop() {
  std::unique_lock lock(mutex);
  for (int idle = 0; !stopping;) {
    idle = anything_under_way() ? 0 : idle + 1;
    if (idle > kIdleLooks) {
      asleep = true;
      if (!anything_under_way()) wake.wait(lock, [] { return stopping || !asleep; });
      asleep = false;
      idle = 0;
      continue;
    }
    wake.wait_for(lock, kInterval, [] { return stopping; });
    if (was_here.exchange(false) || users > 0 || !anything_under_way()) continue;
    lock.unlock();
    GCCL_Progress();
    lock.lock();
  }
}

}  // namespace

void needed() {
  if (!asleep.load(std::memory_order_seq_cst)) return;
  std::lock_guard lock(mutex);
  if (stopping || !asleep) return;
  asleep = false;
  if (thread.joinable()) {
    wake.notify_one();
    return;
  }
  try {
    thread = std::thread(loop);
  } catch (const std::system_error&) {
    asleep = true;  // progress then happens in MPI calls that we see; the next call tries again
  }
}

void main_was_here() {
  if (!was_here.load(std::memory_order_relaxed)) was_here.store(true, std::memory_order_relaxed);
}

void user_functions(int more) { users.fetch_add(more); }

void stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    wake.notify_one();
  }
  if (thread.joinable()) thread.join();
}

int processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : int(std::thread::hardware_concurrency());
}

}  // namespace gccl::pmpi::background
