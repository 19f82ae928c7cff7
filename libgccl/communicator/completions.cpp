#include "libgccl/communicator/completions.hpp"

#include <fmt/core.h>

#include <cassert>
#include <mutex>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator_core.hpp"

namespace gccl::completions {

std::atomic<std::uint32_t> waiting{0}, unreturned{0};

namespace {

using Stage = Operation::Stage;

// Guards the list of operations that are completing, of each of them functions, running and given_up, and only.
std::mutex mutex;
Operation* first = nullptr;
Operation** end_of_list = &first;

// The functions that this thread is inside, the innermost first.
struct Frame {
  const Operation* op;
  const Frame* outer;
  int depth;
};
thread_local const Frame* innermost = nullptr;
// One thread has OnlyHere; this one has.
bool only = false;
thread_local bool only_here = false;
// With the lock held.
bool may_begin() { return !only || only_here; }

// A function that tests a request runs others inside of it, which may do the same: the stack is no list.
constexpr int kDepthMax = 8;

void append(Operation* op) {
  assert(op->stage.load(std::memory_order_relaxed) != Stage::completing);  // it is in the list once
  op->next_completing = nullptr;
  *end_of_list = op;
  end_of_list = &op->next_completing;
  op->stage.store(Stage::completing, std::memory_order_release);
  waiting.fetch_add(1, std::memory_order_relaxed);
}

void remove(Operation* op) {
  Operation** at = &first;
  while (*at != op) {
    assert(*at);  // else it is not in the list
    at = &(*at)->next_completing;
  }
  *at = op->next_completing;
  if (end_of_list == &op->next_completing) end_of_list = at;
}

void call(const Completion& f, GCCL_Result result) {
  try {
    f.call(f.function, result, f.context);
  } catch (...) {
    throw CallersException(fmt::format("a function of GCCL_On_complete threw an exception: {}", caught_text()));
  }
}

// Runs the functions of one operation, those that they add included. The lock is held before and after.
void run_functions(Operation* op, std::unique_lock<std::mutex>& lock) {
  assert(!op->running && op->stage.load(std::memory_order_relaxed) == Stage::completing);
  op->running = true;
  waiting.fetch_sub(1, std::memory_order_relaxed);
  const Frame frame{op, innermost, innermost ? innermost->depth + 1 : 1};
  innermost = &frame;
  const auto result = GCCL_Result(op->status.code());
  if (op->said) op->said->store(true, std::memory_order_relaxed);  // the functions hear it
  for (std::size_t i = 0; i < op->functions.size(); ++i) {
    const Completion function = op->functions[i];
    Status thrown;
    lock.unlock();
    try {
      call(function, result);
    } catch (...) {
      thrown = caught();
    }
    lock.lock();
    unreturned.fetch_sub(1, std::memory_order_release);  // and what the function did is known
    if (op->status.ok() && !thrown.ok()) op->status = std::move(thrown);
  }
  innermost = frame.outer;
  remove(op);
  op->functions.clear();
  op->running = false;
  if (op->given_up) {
    delete op;
  } else {
    op->stage.store(Stage::complete, std::memory_order_release);  // from here on it may be gone
  }
}

}  // namespace

void add(Operation* op, const Completion& function) {
  if (const Inside c(*op); c && c->on_complete(op, function)) return;
  std::lock_guard lock(mutex);
  op->functions.push_back(function);
  unreturned.fetch_add(1, std::memory_order_relaxed);
  if (op->stage.load(std::memory_order_relaxed) == Stage::complete) append(op);
}

void ended(Operation* op) noexcept {
  std::lock_guard lock(mutex);
  append(op);
}

bool run_due() {
  if (innermost && innermost->depth >= kDepthMax) return false;  // further out they are run all the same
  std::unique_lock lock(mutex);
  if (!may_begin()) return false;
  bool ran = false;
  for (std::uint32_t left = waiting.load(std::memory_order_relaxed); left > 0; --left) {
    Operation* op = first;
    while (op && op->running) op = op->next_completing;
    if (!op) return ran;
    run_functions(op, lock);
    ran = true;
  }
  return ran;
}

namespace {

// However deep this thread is inside functions already.
bool run_those_of(Operation* op) {
  std::unique_lock lock(mutex);
  if (!may_begin() || op->running || op->stage.load(std::memory_order_relaxed) != Stage::completing) return false;
  run_functions(op, lock);
  return true;
}

}  // namespace

bool OnlyHere::take() {
  assert(!inside());
  std::lock_guard lock(mutex);
  if (!taken_ && !only) taken_ = only = only_here = true;
  return taken_;
}

bool OnlyHere::alone() const {
  assert(taken_ && !inside());
  std::lock_guard lock(mutex);
  for (const Operation* op = first; op; op = op->next_completing)
    if (op->running) return false;
  return true;
}

OnlyHere::~OnlyHere() {
  if (!taken_) return;
  std::lock_guard lock(mutex);
  only = only_here = false;
}

bool inside() { return innermost != nullptr; }

bool inside(const Operation* op) {
  for (const Frame* f = innermost; f; f = f->outer)
    if (f->op == op) return true;
  return false;
}

bool settle(Operation* op, std::int64_t until_ns) {
  Backoff backoff(true);
  while (op->stage.load(std::memory_order_acquire) != Stage::complete && !inside(op)) {
    const bool ran = run();
    if (run_those_of(op)) continue;
    // Another thread is inside one of them; what that thread would do for the others is done here meanwhile.
    progress_all_but(nullptr);
    if (until_ns != INT64_MAX && now_ns() >= until_ns)
      return op->stage.load(std::memory_order_acquire) == Stage::complete;
    if (!ran) backoff.pause();
  }
  return true;
}

void settle(const CommunicatorCore* c) {
  const auto busy = [c] {
    std::lock_guard lock(mutex);
    for (const Operation* op = first; op; op = op->next_completing)
      if (op->communicator == c && !inside(op)) return true;
    return false;
  };
  for (Backoff backoff(true); busy();)
    if (!run()) backoff.pause();
}

void release(Operation* op) {
  const auto complete = [op] { return op->stage.load(std::memory_order_acquire) == Stage::complete; };
  if (!complete()) {
    std::lock_guard lock(mutex);
    if (!complete()) {  // who is inside its functions, or runs them, deletes it
      op->given_up = true;
      return;
    }
  }
  delete op;
}

void let_go(Operation* op) {
  if (!innermost)
    settle(op);
  else if (!inside(op))
    run();
  release(op);
}

}  // namespace gccl::completions
