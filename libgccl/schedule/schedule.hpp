// A Schedule is a lazy sequence of steps: a generator coroutine that yields a Step or a whole nested Schedule.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "libgccl/base/prefetch.hpp"
#include "libgccl/schedule/step.hpp"

namespace gccl {

// Move-only owner of a suspended coroutine. Nothing is materialised: a suspended ring is 184 bytes.
//
//   Schedule pair(Rank peer, Region a, Region b) {
//     co_yield send(peer, a);
//     co_yield recv(peer, b);
//   }
//   Schedule twice(...) { co_yield pair(...); co_yield pair(...); }
//
// Coroutines take arguments by value and never wait for anything. An exception thrown inside comes out of next().
//
// g++ keeps in the frame whatever the expression of a co_yield makes on the way, each for itself. Where frames count,
// because a lane's turn touches all of one or a simulation has 100,000 of them, a step is made before it is yielded:
// `step = send(...); co_yield step;` makes a ring's frame half as large.
class Schedule {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    promise_type* parent = nullptr;  // of the schedule that yielded this one
    // What was yielded last: a step, or a schedule that next() has not begun with. Both null once it has ended.
    const Step* step = nullptr;
    promise_type* nested = nullptr;
    std::exception_ptr error;

    Schedule get_return_object() { return Schedule(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void unhandled_exception() { error = std::current_exception(); }
    void return_void() {}

    std::suspend_always yield_value(const Step& s) {
      step = &s;
      return {};
    }
    // The nested schedule lives in the awaiter, that is in the yielding coroutine's frame, until it has ended.
    struct Nested;
    Nested yield_value(Schedule&& s);
  };

  Schedule() = default;
  Schedule(Schedule&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)), leaf_(o.leaf_) {}
  Schedule& operator=(Schedule&& o) noexcept {
    std::swap(handle_, o.handle_);
    std::swap(leaf_, o.leaf_);
    return *this;
  }
  ~Schedule() {
    if (handle_) handle_.destroy();
  }

  // The next step, or null at the end. The step stays valid until the next call.
  const Step* next() {
    if (!handle_) return nullptr;
    for (;;) {  // rather than symmetric transfer: compilers without tail calls keep a flat stack
      promise_type& leaf = *leaf_;
      if (const Handle h = Handle::from_promise(leaf); !h.done()) {
        leaf.step = nullptr;
        h.resume();
        if (leaf.step) return leaf.step;
        if (leaf.nested) {
          leaf_ = std::exchange(leaf.nested, nullptr);
          continue;
        }
        if (leaf.error) std::rethrow_exception(std::exchange(leaf.error, nullptr));
      }
      if (!leaf.parent) return nullptr;
      leaf_ = leaf.parent;
    }
  }

  // What next() will touch, of most schedules.
  [[gnu::always_inline]] void fetch() const {
    if (leaf_) prefetch(Handle::from_promise(*leaf_).address(), 256);
  }

 private:
  explicit Schedule(Handle h) : handle_(h), leaf_(&h.promise()) {}

  Handle handle_ = nullptr;
  promise_type* leaf_ = nullptr;  // the innermost running schedule: a step touches its frame and no other
};

struct Schedule::promise_type::Nested {
  Schedule schedule;
  bool await_ready() const noexcept { return !schedule.handle_; }
  void await_suspend(Handle outer) noexcept {
    promise_type& inner = schedule.handle_.promise();
    inner.parent = &outer.promise();
    outer.promise().nested = &inner;
  }
  void await_resume() const noexcept {}
};

inline Schedule::promise_type::Nested Schedule::promise_type::yield_value(Schedule&& s) { return {std::move(s)}; }

}  // namespace gccl
