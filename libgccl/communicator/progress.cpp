// Progress, waiting, and what happens when it fails to come.
#include <algorithm>
#include <cstring>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {
namespace {

constexpr int kDoneAtOnce = 32;
constexpr std::int64_t kLookAroundNs = 1000000;
constexpr std::int64_t kNsPerMs = 1000000;

}  // namespace

bool Communicator::move() noexcept {
  try {
    return advance();
  } catch (...) {
    break_down(blamed(caught()), rank(), true);
    return true;
  }
}

bool Communicator::advance() {
  if (!broken_.ok()) return false;
  if (abort_asked_.load(std::memory_order_relaxed)) {
    break_down(Status::error("GCCL_Abort was called on rank " + std::to_string(rank()) + " with code " +
                                 std::to_string(abort_code_.load()),
                             GCCL_ERR_ABORTED),
               rank(), true);
    told_ = true;
    return true;
  }
  bool moved = false;
  for (Ports::Port& port : ports_->all()) {
    if (port.in_flight == 0) continue;
    GCCL_Transfer* done[kDoneAtOnce];
    const int n = port.backend->poll(port.state, done, kDoneAtOnce);
    if (n < 0) {
      GCCL_Fault f{};
      port.backend->fault(port.state, &f);
      break_down(reason(f), f.peer, true);
      return true;
    }
    port.in_flight -= std::uint32_t(n);
    moved |= n > 0;
    // Whatever happens to their operations below, the port has forgotten them.
    for (int i = 0; i < n; ++i) {
      if (done[i]->cookie == kPointToPointCookie) {
        static_cast<Operation*>(done[i]->owner)->transferring = false;
      } else {
        static_cast<Flow*>(done[i]->owner)->returned(*done[i]);
      }
    }
    for (int i = 0; i < n && broken_.ok(); ++i) {
      if (done[i]->cookie != kPointToPointCookie) {
        if (!static_cast<Flow*>(done[i]->owner)->completed(done[i]))
          break_down(failure(*queue_.front()), done[i]->peer, true);
        continue;
      }
      auto* const op = static_cast<Operation*>(done[i]->owner);
      if (done[i]->result != GCCL_SUCCESS) {
        break_down(
            named(op->work, Status::error("it sends " + std::to_string(done[i]->bytes_found) + " bytes (" +
                                              text_of_signature(done[i]->signature_found, {sequence_, size()}) + ")",
                                          done[i]->result)),
            done[i]->peer, true);
        continue;
      }
      std::erase(transfers_, op);
      finish(op, {});
    }
    if (!broken_.ok()) return true;
  }
  const std::size_t before = queue_.size();
  advance_front();
  return moved || queue_.size() != before;
}

bool Communicator::waits_for_network() const {
  return std::ranges::any_of(ports_->all(), [](const Ports::Port& p) { return p.in_flight > 0 && !p.in_memory; });
}

// Nothing has moved for a while: has a peer gone, or the time?
void Communicator::look_around() noexcept {
  try {
    check_peers_and_time();
    watch();
  } catch (...) {
    break_down(blamed(caught()), rank(), true);
  }
}

void Communicator::check_peers_and_time() {
  if (!broken_.ok()) return;
  GCCL_Fault lost{};
  if (!queue_.empty() && queue_.front()->replaying && !queue_.front()->replay.healthy(&lost)) {
    advance_front();  // what came before the fault may end the call
    return break_down(reason(lost), lost.peer, true);
  }
  // What peers say on ports where nothing is due.
  for (Ports::Port& port : ports_->all()) {
    if (port.in_flight > 0 || !port.state || port.backend->poll(port.state, nullptr, 0) >= 0) continue;
    GCCL_Fault f{};
    port.backend->fault(port.state, &f);
    return break_down(reason(f), f.peer, true);
  }
  const std::int64_t now = now_ns();
  if (!queue_.empty() && timed_out(*queue_.front(), now)) return;
  for (Operation* op : transfers_)
    if (timed_out(*op, now)) return;
  for (const auto* list : {&self_sends_, &self_recvs_})
    for (Operation* op : *list)
      if (timed_out(*op, now)) return;
}

// A wait that does not move: do the others make the same calls?
void Communicator::watch() {
  const Operation* const op = !queue_.empty() ? queue_.front() : !transfers_.empty() ? transfers_.front() : nullptr;
  if (!op || size() == 1 || !broken_.ok()) return;
  const std::int64_t now = now_ns();
  const std::uint64_t moved = op->replaying ? op->replay.next
                              : op->flow    ? op->flow->traffic().messages_sent + op->flow->traffic().messages_received
                                            : 0;
  if (op != stall_.operation || moved != stall_.moved) {
    stall_.operation = op;
    stall_.moved = moved;
    stall_.since_ns = now;
    return;
  }
  const std::int64_t limit_ms = timeout_ms_.load(std::memory_order_relaxed);
  const std::int64_t stall_ns = limit_ms >= 0 && limit_ms < 400 ? limit_ms * 250000 : kStallNs;
  if (now - stall_.since_ns < stall_ns || now - stall_.looked_ns < kLookAroundNs) return;
  stall_.looked_ns = now;
  stall_.watched = true;
  Watch::Waiting w{.signature = op->work.what.signature(), .sequence = op->work.what.sequence, .blocked = blocked_ > 0};
  w.in = !op->work.what.point_to_point()   ? Watch::In::collective
         : op->work.what.kind == kSendKind ? Watch::In::send
                                           : Watch::In::recv;
  awaited(*op, &w.peer);
  if (const Status s = world_->watch->look(*record_, w, now); !s.ok()) break_down(s, rank(), true);
}

// For whom the operation waits, and for what, in words.
std::string Communicator::awaited(const Operation& op, Rank* peer) const {
  *peer = rank();
  if (op.work.what.point_to_point()) {
    *peer = op.work.what.root;
    return op.work.what.kind == kSendKind ? "it to take the message" : "its message";
  }
  if (op.replaying) {
    const Program::Awaited a = op.replay.awaited();
    *peer = a.peer;
    return "its message of " + std::to_string(a.bytes) + " bytes (step " + std::to_string(op.replay.next + 1) + " of " +
           std::to_string(a.steps) + ")";
  }
  std::string what = "a message";
  if (op.flow) op.flow->awaited(peer, &what);
  return what;
}

bool Communicator::timed_out(const Operation& op, std::int64_t now) {
  const std::int64_t limit = timeout_ms_.load(std::memory_order_relaxed);
  if (limit < 0 || now - op.started_ns < limit * kNsPerMs) return false;
  Rank peer = rank();
  const std::string what = awaited(op, &peer);
  break_down(named(op.work, Status::error("not complete after " + std::to_string(limit) + " ms; waiting for " +
                                              who(peer) + ", " + what + world_->watch->report(*record_, now),
                                          GCCL_ERR_TIMEOUT)),
             peer, true);
  return true;
}

Status Communicator::named(const Work& work, const Status& why) const {
  return Status::error(who_of(rank()) + ", " + work.what.text() + ": " + why.text(), why.code());
}

// What a port's fault means for the call that waits; heard from others it is passed on as it is.
Status Communicator::reason(const GCCL_Fault& f) const {
  const Operation* const op = !queue_.empty() ? queue_.front() : !transfers_.empty() ? transfers_.front() : nullptr;
  if (f.result == GCCL_ERR_TIMEOUT && op) {
    // The other rank's words have come shortened; these are this rank's own.
    Rank peer = rank();
    const std::string what = awaited(*op, &peer);
    return Status::error(std::string(f.text) + " ... " + who_of(rank()) + ", " + op->work.what.text() +
                             ": waiting for " + who(peer) + ", " + what + world_->watch->report(*record_, now_ns()),
                         f.result);
  }
  if (f.result != GCCL_ERR_PEER_LOST) return Status::error(f.text, f.result);
  const std::string text = std::strncmp(f.text, "rank ", 5) == 0 ? f.text : "lost " + who(f.peer) + ": " + f.text;
  return op && text.starts_with("lost") ? named(op->work, Status::error(text, f.result))
                                        : Status::error(text, f.result);
}

// The operation that an exception came from, as far as that is known.
Status Communicator::blamed(Status why) const noexcept {
  try {
    if (!queue_.empty()) return named(queue_.front()->work, why);
  } catch (...) {
  }
  return why;
}

// Ends everything under way. The first reason stays. Goes through when memory is short.
void Communicator::break_down(Status why, Rank culprit, bool tell_others) noexcept {
  if (!broken_.ok()) return;
  broken_ = std::move(why);
  if (record_) record_->broken.store(true, std::memory_order_relaxed);
  repeats_ = {};
  if (tell_others && ports_) {
    GCCL_Fault f{.result = broken_.code(), .peer = culprit, .text = {}};
    std::snprintf(f.text, sizeof f.text, "%s", broken_.text().c_str());
    tell(f);
  }
  const auto end = [this](auto& operations) {
    for (Operation* op : operations) drop(op);
    operations.clear();
  };
  end(queue_);
  end(transfers_);
  end(self_sends_);
  end(self_recvs_);
}

void Communicator::tell(const GCCL_Fault& f) noexcept {
  for (Ports::Port& port : ports_->all()) try {
      if (port.state) port.backend->abort(port.state, &f);
    } catch (...) {  // what cannot be said is noticed when this rank leaves
    }
}

void Communicator::drop(Operation* op) noexcept {
  if (op->transferring) {
    Ports::Port& port = ports_->to(op->transfer.peer);
    port.backend->cancel(port.state, &op->transfer);
    --port.in_flight;
    op->transferring = false;
  }
  Status status;
  try {
    status = broken_;
  } catch (...) {
    status = Status::error("out of memory", broken_.code());
  }
  finish(op, std::move(status));
}

void Communicator::fail(Status why) noexcept {
  std::lock_guard lock(lock_);
  break_down(std::move(why), rank(), true);
  told_ = true;
}

bool Communicator::progress() {
  std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock) return false;
  const bool moved = move();
  if (!moved && active_.load(std::memory_order_relaxed) > 0) {
    // Whoever polls comes here a million times a second; looking around asks the operating system about every peer.
    if (const std::int64_t now = now_ns(); now - looked_around_ns_ >= kLookAroundNs) {
      looked_around_ns_ = now;
      look_around();
    }
  }
  return moved;
}

// Until it has ended, or until then.
bool Communicator::carry_on(Operation* op, std::int64_t until_ns) {
  const auto ended = [op] { return op->stage.load(std::memory_order_acquire) != Operation::Stage::under_way; };
  // What is first in the queue holds up a collective, and no message.
  world_->watch->used_by_this_thread();
  bool blocks = until_ns == INT64_MAX && !op->work.what.point_to_point(), counted = false;
  Backoff backoff(world_->oversubscribed);
  while (!ended()) {
    bool moved = false, far = false;
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      moved = move();
      far = waits_for_network();
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
      look_around();
    }
    progress_all_but(this);
    if (until_ns != INT64_MAX && now_ns() >= until_ns && !ended()) return false;
  }
  if (backoff.yields() > 0 || counted) {
    std::lock_guard lock(lock_);
    metrics_.waits_yielded += backoff.yields();
    blocked_ -= counted;
  }
  return true;
}

bool Communicator::wait(Operation* op, std::int64_t timeout_ms, Status* status) {
  const std::int64_t until_ns = timeout_ms < 0 ? INT64_MAX : now_ns() + std::min(timeout_ms, kTimeoutMsMax) * kNsPerMs;
  // A request may outlive its communicator: what has ended does not look at it.
  if (op->stage.load(std::memory_order_acquire) == Operation::Stage::under_way &&
      !op->communicator->carry_on(op, until_ns))
    return false;
  if (!completions::settle(op, until_ns)) return false;
  *status = op->status;
  completions::release(op);
  return true;
}

bool Communicator::test(Operation* op, Status* status) {
  const auto stage = [op] { return op->stage.load(std::memory_order_acquire); };
  if (stage() == Operation::Stage::under_way) {
    Communicator* const c = op->communicator;
    c->world_->watch->used_by_this_thread();
    c->progress();
    if (stage() == Operation::Stage::under_way) progress_all_but(c);
    if (stage() == Operation::Stage::under_way) return false;
  }
  completions::run();
  // Another thread may be inside its function.
  if (stage() != Operation::Stage::complete && !completions::inside(op)) return false;
  *status = op->status;
  completions::release(op);
  return true;
}

void Communicator::give_up(Operation* op) {
  if (op->stage.load(std::memory_order_acquire) == Operation::Stage::under_way) {
    std::lock_guard lock(op->communicator->lock_);
    if (op->stage.load(std::memory_order_acquire) == Operation::Stage::under_way) {
      op->given_up = true;
      return;
    }
  }
  completions::settle(op);
  completions::release(op);
}

bool Communicator::on_complete(Operation* op, GCCL_Completion_function function, void* context) {
  std::lock_guard lock(lock_);
  if (op->stage.load(std::memory_order_acquire) != Operation::Stage::under_way) return false;
  op->functions.push_back({function, context});
  return true;
}

}  // namespace gccl
