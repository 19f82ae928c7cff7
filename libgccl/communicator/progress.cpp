// Progress and waiting.
#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/communicator.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {
namespace {

constexpr int kDoneAtOnce = 32;
constexpr std::int64_t kCheckNs = 1000000;
constexpr std::int64_t kAskAfterPeersNs = 10000000;

}  // namespace

bool Communicator::make_progress() noexcept {
  try {
    return advance();
  } catch (...) {
    break_down(blamed(caught()), rank(), true);
    return true;
  }
}

bool Communicator::advance() {
  if (!failure_.none()) return false;
  if (failure_.abort_asked()) {
    break_down(failure_.aborted(rank()), rank(), true);
    failure_.acknowledge();
    return true;
  }
  bool moved = false;
  for (Ports::Port& port : team_.ports->all()) {
    if (port.in_flight == 0) continue;
    GCCL_Transfer* done[kDoneAtOnce];
    const int n = port.backend->poll(port.state, done, kDoneAtOnce);
    if (n < 0) {
      GCCL_Fault f{};
      port.backend->fault(port.state, &f);
      break_down(f);
      return true;
    }
    assert(std::uint32_t(n) <= port.in_flight);  // else a transport completes what it was not given, or twice
    port.in_flight -= std::uint32_t(n);
    moved |= n > 0;
    // Whatever happens to their operations below, the port has forgotten them.
    for (int i = 0; i < n; ++i) {
      if (done[i]->cookie == kPointToPointCookie) {
        assert(static_cast<Operation*>(done[i]->owner)->transferring);
        static_cast<Operation*>(done[i]->owner)->transferring = false;
      } else {
        static_cast<Flow*>(done[i]->owner)->returned(*done[i]);
      }
    }
    for (int i = 0; i < n && failure_.none(); ++i) {
      if (done[i]->cookie != kPointToPointCookie) {
        if (!static_cast<Flow*>(done[i]->owner)->completed(done[i]))
          break_down(queue_.front()->flow_failure(team_.members), done[i]->peer, true);
        continue;
      }
      auto* const op = static_cast<Operation*>(done[i]->owner);
      if (done[i]->result != GCCL_SUCCESS) {
        break_down(*op,
                   Status::error(
                       fmt::format("it sends {} bytes ({})", done[i]->bytes_found,
                                   text_of_signature(done[i]->signature_found, {team_.record->history.last(), size()})),
                       done[i]->result),
                   done[i]->peer);
        continue;
      }
      std::erase(transfers_, op);
      finish(op, {});
    }
    if (!failure_.none()) return true;
  }
  const std::size_t before = queue_.size();
  advance_front();
  return moved || queue_.size() != before;
}

Operation* Communicator::first_pending() const {
  return !queue_.empty() ? queue_.front() : !transfers_.empty() ? transfers_.front() : nullptr;
}

// Nothing has moved for a while: has a peer gone, or the time?
void Communicator::check_progress() noexcept {
  try {
    check_peers_and_time();
    watch_stall();
    dump_if_asked();
  } catch (...) {
    break_down(blamed(caught()), rank(), true);
  }
}

// In memory a fault is looked for once in thousands of polls, which take seconds where other processes need the
// processor: let the next poll do it.
void Communicator::ask_after_peers() {
  const std::int64_t now = now_ns();
  if (now - asked_after_peers_ns_ < kAskAfterPeersNs) return;
  asked_after_peers_ns_ = now;
  for (Ports::Port& port : team_.ports->all())
    if (port.in_memory && port.in_flight > 0) port.backend->poll(port.state, nullptr, 0);
}

void Communicator::check_peers_and_time() {
  if (!failure_.none()) return;
  GCCL_Fault lost{};
  if (!queue_.empty() && queue_.front()->replaying && !queue_.front()->replay.healthy(&lost)) {
    advance_front();  // what came before the fault may end the call
    return break_down(lost);
  }
  ask_after_peers();
  // What peers say on ports where nothing is due.
  for (Ports::Port& port : team_.ports->all()) {
    if (port.in_flight > 0 || !port.state || port.backend->poll(port.state, nullptr, 0) >= 0) continue;
    GCCL_Fault f{};
    port.backend->fault(port.state, &f);
    return break_down(f);
  }
  if (const std::uint32_t news = team_.world->recovery->news(); news != news_) {
    news_ = news;
    Rank who = rank();
    if (Status s = team_.world->recovery->silence(team_.members, &who); !s.ok())
      return break_down(blamed(std::move(s)), who, true);
  }
  const std::int64_t now = now_ns();
  if (!queue_.empty() && timed_out(*queue_.front(), now)) return;
  for (Operation* op : transfers_)
    if (timed_out(*op, now)) return;
  for (const Operation* op : to_myself_)
    if (timed_out(*op, now)) return;
}

// A wait that does not move: do the others make the same calls?
void Communicator::watch_stall() {
  Operation* const op = first_pending();
  if (!op || size() == 1 || !failure_.none()) return;
  const std::int64_t now = now_ns();
  const std::int64_t limit_ms = timeout_ms_.load(std::memory_order_relaxed);
  if (!op->stall.lasts(op->moved(), now, limit_ms >= 0 && limit_ms < 400 ? limit_ms * 250000 : kStallNs)) return;
  Watch::Waiting w{.signature = op->work.what.signature(),
                   .sequence = op->work.what.sequence,
                   .peer = rank(),
                   .blocked = blocked_ > 0};
  w.in = !op->work.what.point_to_point()   ? Watch::In::collective
         : op->work.what.kind == kSendKind ? Watch::In::send
                                           : Watch::In::recv;
  op->awaited(&w.peer);
  if (const Status s = team_.world->watch->look(*team_.record, w, now); !s.ok()) {
    // A peer that has failed makes other calls now; what it said of its failure comes first.
    asked_after_peers_ns_ = 0;
    ask_after_peers();
    advance();
    break_down(s, rank(), true);
  }
}

bool Communicator::timed_out(const Operation& op, std::int64_t now) {
  const std::int64_t limit = timeout_ms_.load(std::memory_order_relaxed);
  if (limit < 0 || now - op.started_ns < limit * kNsPerMs) return false;
  Rank peer = rank();
  const std::string what = op.awaited(&peer);
  break_down(op,
             Status::error(fmt::format("not complete after {} ms; waiting for {}, {}{}", limit,
                                       team_.members.name(peer), what, team_.world->watch->report(*team_.record, now)),
                           GCCL_ERR_TIMEOUT),
             peer);
  return true;
}

bool Communicator::progress() {
  std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock) return false;
  const bool moved = make_progress();
  if (!moved && active_.load(std::memory_order_relaxed) > 0) {
    // A thread that polls comes here a million times a second; the check asks the operating system about every peer.
    if (const std::int64_t now = now_ns(); now - checked_ns_ >= kCheckNs) {
      checked_ns_ = now;
      check_progress();
    }
  }
  return moved;
}

// Until it has ended, or until then.
bool Communicator::progress_until(Operation* op, std::int64_t until_ns) {
  const auto ended = [op] { return op->stage.load(std::memory_order_acquire) != Operation::Stage::pending; };
  // What is first in the queue holds up a collective, and no message.
  bool blocks = until_ns == INT64_MAX && !op->work.what.point_to_point(), counted = false;
  Backoff backoff(team_.world->oversubscribed);
  while (!ended()) {
    bool moved = false, far = false;
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      moved = make_progress();
      far = team_.ports->waits_for_network();
    }
    completions::run();
    if (ended()) break;
    if (moved) {
      backoff.reset();
      continue;
    }
    if (!backoff.pause(far)) continue;
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      if (blocks) {
        blocks = false;
        counted = true;
        ++blocked_;
      }
      check_progress();
    }
    progress_all_but(this);
    if (until_ns != INT64_MAX && now_ns() >= until_ns && !ended()) return false;
  }
  if (backoff.yields() > 0 || counted) {
    std::lock_guard lock(lock_);
    metrics_.waited(backoff);
    blocked_ -= counted;
  }
  return true;
}

bool Communicator::wait(Operation* op, std::int64_t timeout_ms, Status* status) {
  const std::int64_t until_ns = timeout_ms < 0 ? INT64_MAX : now_ns() + std::min(timeout_ms, kTimeoutMsMax) * kNsPerMs;
  // A request may outlive its communicator: what has ended does not look at it.
  if (op->stage.load(std::memory_order_acquire) == Operation::Stage::pending &&
      !op->communicator->progress_until(op, until_ns))
    return false;
  if (!completions::settle(op, until_ns)) return false;
  *status = op->hand_out();
  completions::release(op);
  return true;
}

bool Communicator::test(Operation* op, Status* status) {
  const auto stage = [op] { return op->stage.load(std::memory_order_acquire); };
  if (stage() == Operation::Stage::pending) {
    Communicator* const c = op->communicator;
    c->progress();
    if (stage() == Operation::Stage::pending) progress_all_but(c);
    if (stage() == Operation::Stage::pending) return false;
  }
  completions::run();
  // Another thread may be inside its function.
  if (stage() != Operation::Stage::complete && !completions::inside(op)) return false;
  *status = op->hand_out();
  completions::release(op);
  return true;
}

void Communicator::give_up(Operation* op) {
  if (op->stage.load(std::memory_order_acquire) == Operation::Stage::pending) {
    std::lock_guard lock(op->communicator->lock_);
    if (op->stage.load(std::memory_order_acquire) == Operation::Stage::pending) {
      op->given_up = true;
      return;
    }
  }
  completions::settle(op);
  completions::release(op);
}

bool Communicator::on_complete(Operation* op, GCCL_Completion_function function, void* context) {
  std::lock_guard lock(lock_);
  if (op->stage.load(std::memory_order_acquire) != Operation::Stage::pending) return false;
  op->functions.push_back({function, context});
  completions::unreturned.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace gccl
