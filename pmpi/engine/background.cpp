#include "pmpi/engine/background.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "gccl/gccl.h"
#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi::background {
namespace {

constexpr auto kInterval = std::chrono::microseconds(500);
constexpr int kIdleLooks = 200;  // then it sleeps: a program that never calls us again pays nothing

std::atomic<bool> was_here{false}, asleep{true};

// Never destroyed: the thread may look at it until the process ends.
struct State {
  std::mutex mutex;  // of the rest; held while the thread is in GCCL
  std::condition_variable wake;
  std::thread thread;
  int keep_off = 0;
  bool stopping = false;
};
State& state() {
  static auto* const made = new State;
  return *made;
}

void loop() {
  const InOwnCode here;  // GCCL's transport may be MPI
  State& s = state();
  std::unique_lock lock(s.mutex);
  for (int idle = 0; !s.stopping;) {
    idle = anything_in_flight() ? 0 : idle + 1;
    if (idle > kIdleLooks) {
      asleep = true;
      if (!anything_in_flight()) s.wake.wait(lock, [&s] { return s.stopping || !asleep; });
      asleep = false;
      idle = 0;
      continue;
    }
    s.wake.wait_for(lock, kInterval, [&s] { return s.stopping; });
    if (!was_here.exchange(false) && s.keep_off == 0 && anything_in_flight() && !s.stopping) GCCL_Progress();
  }
}

// A child process has no such thread, whatever was copied. Forking waits until the thread is out of GCCL.
void before_fork() { state().mutex.lock(); }
void after_fork() { state().mutex.unlock(); }
void in_child() {
  State& s = state();
  new (&s.thread) std::thread;
  s.stopping = true;
  s.mutex.unlock();
}

}  // namespace

bool start() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.thread.joinable() || s.stopping) return s.thread.joinable();
  // The program's signal handlers expect the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    s.thread = std::thread(loop);
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!s.thread.joinable()) return false;
  pthread_setname_np(s.thread.native_handle(), "gccl_pmpi");
  static const bool once = [] {
    pthread_atfork(before_fork, after_fork, in_child);
    std::atexit(stop);  // of a program that ends without MPI_Finalize
    return true;
  }();
  return once;
}

void needed() {
  if (!asleep.load(std::memory_order_seq_cst)) return;
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.stopping || !asleep) return;
  asleep = false;
  s.wake.notify_one();
}

void main_was_here() {
  if (!was_here.load(std::memory_order_relaxed)) was_here.store(true, std::memory_order_relaxed);
}

KeepOff::KeepOff(bool needed) : needed_(needed) {
  if (!needed_) return;
  std::lock_guard lock(state().mutex);
  ++state().keep_off;
}

KeepOff::~KeepOff() {
  if (!needed_) return;
  std::lock_guard lock(state().mutex);
  --state().keep_off;
}

void stop() {
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    s.stopping = true;
    s.wake.notify_one();
  }
  if (s.thread.joinable()) s.thread.join();
}

}  // namespace gccl::pmpi::background
