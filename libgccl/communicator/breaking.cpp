// The end of a communicator that goes no further: why, who is told, and what becomes of the operations in flight.
#include <fmt/core.h>

#include <cstring>

#include "libgccl/communicator/communicator.hpp"

namespace gccl {

// What a port's fault means for the call that waits; heard from others it is passed on as it is.
Status Communicator::reason(const GCCL_Fault& f) const {
  const Operation* const op = first_pending();
  if (f.result == GCCL_ERR_TIMEOUT && op) {
    // The other rank's words have come shortened; these are this rank's own.
    Rank peer = rank();
    const std::string what = op->awaited(&peer);
    const Status mine = team_.members.in_context(
        op->work.what, Status::error(fmt::format("waiting for {}, {}{}", team_.members.name(peer), what,
                                                 team_.world->watch->report(*team_.record, now_ns())),
                                     f.result));
    return Status::error(fmt::format("{} ... {}", f.text, mine.text()), f.result);
  }
  if (f.result != GCCL_ERR_PEER_LOST) return Status::error(f.text, f.result);
  const std::string text =
      std::strncmp(f.text, "rank ", 5) == 0 ? f.text : fmt::format("lost {}: {}", team_.members.name(f.peer), f.text);
  return op && text.starts_with("lost") ? team_.members.in_context(op->work.what, Status::error(text, f.result))
                                        : Status::error(text, f.result);
}

// As far as memory allows.
Status Communicator::in_context(const Descriptor& what, Status why) const noexcept {
  try {
    return team_.members.in_context(what, why);
  } catch (...) {
    return why;
  }
}

// The operation that an exception came from, as far as that is known.
Status Communicator::blamed(Status why) const noexcept {
  if (queue_.empty()) return why;
  return in_context(queue_.front()->work.what, std::move(why));
}

// Ends everything in flight. The first reason stays. Goes through when memory is short.
void Communicator::break_down(Status why, Rank culprit, bool tell_others) noexcept {
  if (!failure_.none()) return;
  failure_.set(std::move(why), culprit);
  if (team_.record) team_.record->broken.store(true, std::memory_order_relaxed);
  // Also where all have found the same: a peer that still reads what this rank sends must stop before it is taken back.
  if ((tell_others || !transfers_.empty()) && team_.ports) {
    GCCL_Fault f{.result = failure_.why().code(), .peer = culprit, .text = {}};
    std::snprintf(f.text, sizeof f.text, "%s", failure_.why().text().c_str());
    tell(f);
  }
  dump_failure();
  const auto end = [this](auto& operations) {
    for (Operation* op : operations) drop(op);
    operations.clear();
  };
  end(queue_);
  end(transfers_);
  end(to_myself_);
}

void Communicator::tell(const GCCL_Fault& f) noexcept {
  for (Ports::Port& port : team_.ports->all()) try {
      if (port.state) port.backend->abort(port.state, &f);
    } catch (...) {  // what cannot be said is noticed when this rank leaves
    }
}

void Communicator::drop(Operation* op) noexcept {
  if (op->transferring) {
    Ports::Port& port = team_.ports->to(op->transfer.peer);
    port.backend->cancel(port.state, &op->transfer);
    --port.in_flight;
    op->transferring = false;
  }
  finish(op, failure_.why().copy_or_code());
}

std::vector<Rank> Communicator::lost() {
  std::lock_guard lock(lock_);
  if (failure_.why().code() == GCCL_ERR_PEER_LOST && failure_.culprit() < size()) return {failure_.culprit()};
  return {};
}

void Communicator::fail(Status why) noexcept {
  std::lock_guard lock(lock_);
  const bool first = failure_.none();
  break_down(std::move(why), rank(), true);
  if (first) failure_.acknowledge();  // the caller returns this one
}

void Communicator::abort(int code) noexcept {
  failure_.ask_abort(code);
  // The other ranks get it at once; a thread that waits here finds out at its next poll.
  tell(Failure::abort_by(rank(), code));
  if (std::unique_lock lock(lock_, std::try_to_lock); lock) make_progress();
}

}  // namespace gccl
