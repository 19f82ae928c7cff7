#include "libgccl/communicator/supervisor.hpp"

#include <fmt/core.h>

#include <cassert>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/record/flight_dump.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kCheckNs = 1000000;
constexpr std::int64_t kAskAfterPeersNs = 10000000;

}  // namespace

// Nothing has moved for a while: has a peer gone, or the time?
void Supervisor::check() noexcept {
  assert(operations_.locked());
  try {
    check_peers_and_time();
    watch_stall();
    dump_if_asked(team_, operations_);
    team_.flight.polled(now_ns());
  } catch (...) {
    operations_.break_down(operations_.blamed(caught()), team_.rank(), true);
  }
}

void Supervisor::check_peers_and_time() {
  if (!operations_.failure().none()) return;
  const auto& collectives = operations_.collectives();
  GCCL_Fault lost{};
  if (!collectives.empty() && collectives.front()->replaying && !collectives.front()->replay.healthy(&lost)) {
    operations_.advance_collectives();  // what came before the fault may end the call
    return operations_.break_down(lost);
  }
  ask_after_peers();
  // What peers say on ports where nothing is due.
  for (Ports::Port& port : team_.ports->all()) {
    if (port.in_flight > 0 || !port.state || port.backend->poll(port.state, nullptr, 0) >= 0) continue;
    GCCL_Fault f{};
    port.backend->fault(port.state, &f);
    return operations_.break_down(f);
  }
  if (const std::uint32_t news = team_.world->recovery->news(); news != news_) {
    news_ = news;
    Rank who = team_.rank();
    if (Status s = team_.world->recovery->silence(team_.members, &who); !s.ok())
      return operations_.break_down(operations_.blamed(std::move(s)), who, true);
  }
  const std::int64_t now = now_ns();
  if (!collectives.empty()) {
    const Operation& op = *collectives.front();
    if (timed_out(op, op.begun_ns ? op.begun_ns : op.started_ns, now)) return;
  }
  // Messages from one rank, or to one, move one after the other. What was started later has not waited any longer.
  const std::int64_t limit = timeout_ms();
  const auto may_time_out = [&](const Operation& op) { return limit >= 0 && now - op.started_ns >= limit * kNsPerMs; };
  for (const Operation* op : operations_.transfers()) {
    if (!may_time_out(*op)) break;
    const Descriptor& what = op->work.what;
    const std::int64_t ended_ns = team_.record->messages.ended_ns(what.kind == kSendKind, what.root);
    if (timed_out(*op, std::max(op->started_ns, ended_ns), now)) return;
  }
  for (const Operation* op : operations_.to_myself()) {
    if (!may_time_out(*op)) break;
    if (timed_out(*op, op->started_ns, now)) return;
  }
}

// In memory a fault is looked for once in thousands of polls, which take seconds where other processes need the
// processor: let the next poll do it.
void Supervisor::ask_after_peers() {
  const std::int64_t now = now_ns();
  if (now - asked_after_peers_ns_ < kAskAfterPeersNs) return;
  asked_after_peers_ns_ = now;
  for (Ports::Port& port : team_.ports->all())
    if (port.in_memory && port.in_flight > 0) port.backend->poll(port.state, nullptr, 0);
}

bool Supervisor::timed_out(const Operation& op, std::int64_t since_ns, std::int64_t now) {
  const std::int64_t limit = timeout_ms();
  if (limit < 0 || now - since_ns < limit * kNsPerMs) return false;
  const std::int64_t behind_ms = (since_ns - op.started_ns) / kNsPerMs;
  Rank peer = team_.rank();
  const std::string what = op.awaited(&peer), slow = team_.links ? team_.links->text() : "";
  operations_.break_down(
      op,
      Status::error(fmt::format("not complete after {} ms{}; waiting for {}, {}{}{}", limit,
                                behind_ms ? fmt::format(" (and {} ms behind earlier calls)", behind_ms) : "",
                                team_.members.name(peer), what, team_.world->watch->report(*team_.record, now),
                                slow.empty() ? "" : fmt::format("; a slow link {}", slow)),
                    GCCL_ERR_TIMEOUT),
      peer);
  return true;
}

const Operation* Supervisor::awaited() const {
  const auto in = [](const auto& list) { return std::ranges::find(list, true, &Operation::blocking); };
  if (const auto op = in(operations_.transfers()); op != operations_.transfers().end()) return *op;
  if (const auto op = in(operations_.to_myself()); op != operations_.to_myself().end()) return *op;
  const auto& collectives = operations_.collectives();
  return in(collectives) != collectives.end() ? collectives.front() : nullptr;
}

// A wait that does not move: do the others make the same calls?
void Supervisor::watch_stall() {
  Operation* const first = operations_.first();
  if (!first || !operations_.failure().none()) return;
  const std::int64_t now = now_ns();
  const std::int64_t limit_ms = timeout_ms();
  if (!first->stall.lasts(first->moved(), now, limit_ms >= 0 && limit_ms < 400 ? limit_ms * 250000 : kStallNs)) return;
  const Operation* const wait = awaited();
  const Operation* const op = wait ? wait : first;
  Watch::Waiting w{.signature = (op->checked ? *op->checked : op->work.what).signature(),
                   .follows = op->comparison && op->comparison->follows(),
                   .checks = op->checked.has_value(),
                   .sequence = op->work.what.sequence,
                   .peer = team_.rank(),
                   .blocked = wait != nullptr,
                   .limited = limit_ms >= 0,
                   .number = waits_,
                   .message = op->message};
  w.in = !op->work.what.point_to_point()   ? Watch::In::collective
         : op->work.what.kind == kSendKind ? Watch::In::send
                                           : Watch::In::recv;
  op->awaited(&w.peer, &w.receives);
  team_.record->watched = true;
  if (const Status s = team_.world->watch->check(*team_.record, w, now); !s.ok()) {
    // A peer that has failed makes other calls now; what it said of its failure comes first.
    asked_after_peers_ns_ = 0;
    ask_after_peers();
    operations_.make_progress();
    Watch::Difference found = team_.world->watch->found(*team_.record);
    operations_.break_down(std::move(found.what), found.rank, true, std::move(found.ranks));
    if (team_.world->watch->agreement_differs(*team_.record)) team_.world->recovery->end_calls(team_.members, s);
  }
}

Status Supervisor::agrees(Watch::In in) {
  assert(in == Watch::In::nothing || Watch::agrees(in));
  Watch& watch = *team_.world->watch;
  check();
  // What is in flight says itself what it waits for.
  if (in == Watch::In::nothing || operations_.busy() || !operations_.failure().none()) {
    watch.over(*team_.record);
    const Status& why = operations_.failure().why();
    return why.code() == GCCL_ERR_ABORTED ? why.copy_or_code() : Status();
  }
  Status s = watch.check(*team_.record,
                         {.in = in,
                          .sequence = team_.record->history.last(),
                          .peer = team_.rank(),
                          .blocked = true,
                          .limited = timeout_ms() >= 0},
                         now_ns());
  return watch.agreement_differs(*team_.record) ? std::move(s) : Status();
}

// What a port finds it says again when a call asks.
void Supervisor::serve_at_times() noexcept try {
  const std::int64_t now = now_ns();
  if (now - checked_ns_ < kCheckNs || !operations_.failure().none()) return;
  checked_ns_ = now;
  for (Ports::Port& port : team_.ports->all())
    if (port.state && port.link_counts) port.backend->poll(port.state, nullptr, 0);
} catch (...) {  // no memory: later
}

void Supervisor::check_at_times() {
  if (const std::int64_t now = now_ns(); now - checked_ns_ >= kCheckNs) {
    checked_ns_ = now;
    check();
  }
}

}  // namespace gccl
