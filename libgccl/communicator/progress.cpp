// Progress and waiting: the communicator's lock is taken for a moment at a time.
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {
namespace {

SpinLock entering;  // of those who look whether an operation has ended, and its communicator may be gone

}  // namespace

Inside::Inside(const Operation& op) {
  const auto pending = [&] { return op.stage.load(std::memory_order_acquire) == Operation::Stage::pending; };
  if (!pending()) return;
  std::lock_guard lock(entering);
  if (!pending()) return;
  c_ = op.communicator;
  enter();
}

void CommunicatorCore::await_all() noexcept {
  { std::lock_guard lock(entering); }  // who comes later finds that its operation has ended
  // A function of GCCL_On_failure in another thread may wait for those of a request.
  for (Backoff backoff(true); entered();)
    if (!completions::run()) backoff.pause();
}

Progress CommunicatorCore::progress() {
  std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock) return Progress::nothing;
  if (!busy() && team_.world->mends) {
    supervisor_.serve_at_times();
    return Progress::nothing;
  }
  const Progress made = operations_.make_progress();
  if (busy()) supervisor_.check_at_times();  // also where others always have something to do
  return made;
}

// Until it has ended, or until then.
bool CommunicatorCore::progress_until(Operation* op, std::int64_t until_ns) {
  const auto ended = [op] { return op->stage.load(std::memory_order_acquire) != Operation::Stage::pending; };
  const bool limited = until_ns != INT64_MAX;
  bool blocks = !limited;  // then the thread goes on when the operation has ended, and never before
  // Other operations may always have something to do: limits, peers and other communicators are looked at all the same.
  constexpr unsigned kBusyPolls = 64;
  unsigned busy_polls = 0;
  Backoff backoff(team_.world->oversubscribed);
  while (!ended()) {
    Progress made = Progress::nothing;
    bool far = false;
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      made = operations_.make_progress();
      far = team_.ports->waits_for_network();
    }
    completions::run();
    if (ended()) break;
    if (made == Progress::something) {
      backoff.reset();
      if (++busy_polls % kBusyPolls != 0) continue;
    } else if (!limited || now_ns() < until_ns) {
      // Each poll of bytes takes long enough for what follows.
      if (made == Progress::bytes) backoff.stay_awake();
      if (!backoff.pause(far) && made != Progress::bytes) continue;
    }
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      if (std::exchange(blocks, false)) supervisor_.thread_blocks(*op);
      if (limited || made == Progress::something)
        supervisor_.check_at_times();  // a caller may wait for no time at all again and again
      else
        supervisor_.check();
    }
    progress_all_but(this);
    if (limited && now_ns() >= until_ns && !ended()) return false;
  }
  if (backoff.yields() > 0) {
    std::lock_guard lock(lock_);
    recorder_.metrics().waited(backoff);
  }
  return true;
}

bool CommunicatorCore::wait(Operation* op, std::int64_t timeout_ms, Status* status) {
  const std::int64_t until_ns = timeout_ms < 0 ? INT64_MAX : now_ns() + std::min(timeout_ms, kTimeoutMsMax) * kNsPerMs;
  if (const Inside inside(*op); inside && !inside->progress_until(op, until_ns)) return false;
  assert(op->stage.load(std::memory_order_acquire) != Operation::Stage::pending);
  if (!completions::settle(op, until_ns)) return false;
  *status = op->hand_out();
  completions::release(op);
  return true;
}

namespace {

// Where several operations are tested in turns, gives up the processor each time the first of them comes again.
void yield_once_around(const Operation* op) {
  constexpr unsigned kTestsMost = 256;  // the first may have ended, or be tested no more
  thread_local const Operation* first = nullptr;
  thread_local unsigned tests = 0;
  if (first && op != first && ++tests < kTestsMost) return;
  if (first) ::sched_yield();
  first = op;
  tests = 0;
}

}  // namespace

bool CommunicatorCore::test(Operation* op, Status* status, Progress* made) {
  const auto stage = [op] { return op->stage.load(std::memory_order_acquire); };
  if (const Inside c(*op); c) {
    Progress any = c->progress();
    if (stage() == Operation::Stage::pending) any = std::max(any, progress_all_but(c.operator->()));
    if (made) *made = std::max(*made, any);
    if (stage() == Operation::Stage::pending) {
      // Nobody else paces the caller, who may test in a loop and hold up the rank that it waits for.
      if (!made && any == Progress::nothing && c->world().oversubscribed) yield_once_around(op);
      return false;
    }
  }
  completions::run();
  // Another thread may be inside its function.
  if (stage() != Operation::Stage::complete && !completions::inside(op)) return false;
  *status = op->hand_out();
  completions::release(op);
  return true;
}

void CommunicatorCore::give_up(Operation* op) {
  if (const Inside c(*op); c) {
    std::lock_guard lock(c->lock_);
    if (op->stage.load(std::memory_order_acquire) == Operation::Stage::pending) {
      op->given_up = true;
      return;
    }
  }
  completions::let_go(op);
}

bool CommunicatorCore::on_complete(Operation* op, const Completion& function) {
  assert(function.function && op->communicator == this);
  std::lock_guard lock(lock_);
  if (op->stage.load(std::memory_order_acquire) != Operation::Stage::pending) return false;
  op->functions.push_back(function);
  completions::unreturned.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void CommunicatorCore::thread_blocks(Operation* op) {
  const Inside c(*op);
  if (!c) return;
  std::lock_guard lock(c->lock_);
  c->supervisor_.thread_blocks(*op);
}

Status CommunicatorCore::agrees(Watch::In in) noexcept {
  try {
    progress_all_but(nullptr);
    std::lock_guard lock(lock_);
    operations_.make_progress();
    return supervisor_.agrees(in);
  } catch (const std::bad_alloc&) {  // later: the call goes on without, and ends for all where it is given up
    return {};
  } catch (...) {
    return caught();
  }
}

}  // namespace gccl
