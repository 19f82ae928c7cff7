// Asynchronous queues with priorities: to run collectives on several communicators concurrently.
#pragma once

#include "gccl/cpp20.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gccl {
inline namespace api {

// Threads that carry out functions from streams. The functions of one stream run one after the other, in the order of
// their submission; of the streams that could go on, the one with the highest priority does, and among equals the one
// whose next function was submitted first. At most `concurrency` functions run at a time.
//
// A function that waits for other ranks holds its place meanwhile. So that ranks cannot wait for each other crosswise,
// let concurrency be at least the number of streams whose functions wait; or let functions start operations
// (iallreduce ...) and return the Request.
//
// Any thread may submit, also from inside a function. The destructor carries out everything that was submitted first.
class StreamPool {
  struct State;

 public:
  // A handle to a queue; copies name the same one. Must not be used once the pool is gone.
  class Stream {
   public:
    // Calls f() in its turn. Its result, or what it threw, is in the future.
    template <class F>
    std::future<std::invoke_result_t<std::decay_t<F>&>> submit(F&& f) {
      auto task = std::make_shared<std::packaged_task<std::invoke_result_t<std::decay_t<F>&>()>>(std::forward<F>(f));
      auto future = task->get_future();
      pool_->add(state_, [task] { (*task)(); });
      return future;
    }
    int priority() const { return state_->priority; }

   private:
    friend class StreamPool;
    Stream(StreamPool* pool, std::shared_ptr<State> state) : pool_(pool), state_(std::move(state)) {}
    StreamPool* pool_;
    std::shared_ptr<State> state_;
  };

  explicit StreamPool(unsigned concurrency) {
    if (concurrency == 0) throw std::invalid_argument("StreamPool: concurrency is 0, expected at least 1");
    try {
      for (unsigned i = 0; i < concurrency; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~StreamPool() { stop(); }
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  // A new stream; higher priorities go first.
  Stream stream(int priority = 0) { return Stream(this, std::make_shared<State>(priority)); }
  // Calls f() in no stream: it waits for no other function.
  template <class F>
  auto submit(int priority, F&& f) {
    return stream(priority).submit(std::forward<F>(f));
  }
  // Returns when nothing is left to do. Not from inside a function.
  void wait_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return ready_.empty() && running_ == 0; });
  }
  unsigned concurrency() const { return unsigned(workers_.size()); }

 private:
  struct Task {
    std::uint64_t number;  // in order of submission, over all streams
    std::function<void()> run;
  };
  struct State {
    explicit State(int p) : priority(p) {}
    const int priority;
    std::deque<Task> tasks;
    bool running = false;
  };
  // The first is to go on first.
  struct Urgency {
    int priority;
    std::uint64_t number;
    std::shared_ptr<State> stream;
    bool operator<(const Urgency& other) const {
      return std::tie(other.priority, number) < std::tie(priority, other.number);
    }
  };

  void add(const std::shared_ptr<State>& stream, std::function<void()> run) {
    std::lock_guard lock(mutex_);
    stream->tasks.push_back({next_number_++, std::move(run)});
    if (!stream->running && stream->tasks.size() == 1) make_ready(stream);
  }
  void make_ready(const std::shared_ptr<State>& stream) {
    ready_.insert({stream->priority, stream->tasks.front().number, stream});
    wake_.notify_one();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      // While others run, they may still submit.
      wake_.wait(lock, [this] { return !ready_.empty() || (stopping_ && running_ == 0); });
      if (ready_.empty()) return;
      const std::shared_ptr<State> stream = ready_.extract(ready_.begin()).value().stream;
      Task task = std::move(stream->tasks.front());
      stream->tasks.pop_front();
      stream->running = true;
      ++running_;
      lock.unlock();
      task.run();
      task.run = nullptr;  // what it captured goes before the pool counts as idle
      lock.lock();
      stream->running = false;
      --running_;
      if (!stream->tasks.empty()) make_ready(stream);
      if (ready_.empty() && running_ == 0) {
        idle_.notify_all();
        if (stopping_) wake_.notify_all();
      }
    }
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& w : workers_) w.join();
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::set<Urgency> ready_;  // streams with a function to run, none of which runs one
  std::uint64_t next_number_ = 0;
  unsigned running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace api
}  // namespace gccl
