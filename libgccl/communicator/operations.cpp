#include "libgccl/communicator/operations.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/base/shortened.hpp"
#include "libgccl/communicator/breaking.hpp"
#include "libgccl/communicator/completions.hpp"
#include "libgccl/communicator/record/flight_dump.hpp"

namespace gccl {
namespace {

constexpr int kDoneAtOnce = 32;
constexpr std::uint64_t kFlowBytes = 1 << 20;

}  // namespace

Status Operations::start(std::unique_ptr<Operation> op, Operation** out) {
  assert(locked());
  *out = nullptr;
  if (failure_.abort_asked()) make_progress();
  if (!failure_.none()) return failure_.returned();
  op->started_ns = now_ns();
  if (recorder_.metrics().times(op->work.what)) op->timed_from_ns = op->started_ns;
  try {
    enqueue(op.get());
  } catch (...) {
    break_down(*op, caught(), team_.rank());
    if (op->stage.load(std::memory_order_relaxed) ==
        Operation::Stage::pending) {  // it was in no list, or broken before
      std::erase(queue_, op.get());
      if (transfers_.holds(op.get())) transfers_.erase(op.get());
      std::erase(to_myself_.waiting(), op.get());
      in_flight_.one_less();
    }
    return failure_.returned();
  }
  *out = op.release();
  return {};
}

Operation* Operations::resume(std::unique_ptr<Operation> op) {
  assert(locked());
  assert(op->plan && op->plan->program && op->replay.program == op->plan->program.get() && failure_.none());
  op->started = op->replaying = true;
  op->started_ns = op->begun_ns = now_ns();
  team_.flight.goes_on(op->work.what.sequence);
  queue_.push_back(op.get());
  in_flight_.one_more();
  return op.release();
}

std::shared_ptr<PreparedPlan> Operations::plan_of(const Work& work) {
  bool made = false;
  std::shared_ptr<PreparedPlan> plan = team_.plans->of(work, &made);
  recorder_.planned(work, *plan, made);
  return plan;
}

Operation* Operations::first() const {
  if (!queue_.empty()) return queue_.front();
  if (!transfers_.empty()) return transfers_.front();
  return to_myself().empty() ? nullptr : to_myself().front();
}

void Operations::enqueue(Operation* op) {
  assert(!op->started && failure_.none());
  in_flight_.one_more();
  if (op->work.what.point_to_point()) return begin_transfer(op);
  recorder_.number(op->work);
  if (team_.world->check && team_.size() > 1) check_first(*op);
  queue_.push_back(op);
  advance_collectives();
}

// The ranks compare what they call before they carry it out.
void Operations::check_first(const Operation& op) {
  const Descriptor& what = op.work.what;
  std::uint64_t lengths_sum = 0;
  if (op.work.call.kind == Collective::alltoallv) {
    const Lengths& l = *op.work.lengths;
    lengths_sum = Watch::lengths_sum(team_.rank(), team_.size(), what.sequence, l.send_counts, l.recv_counts);
  }
  auto check = std::make_unique<Operation>(*op.communicator);
  check->compare(Comparison::of_descriptions(team_.members, what, lengths_sum), team_.members);
  check->work.what.sequence = what.sequence;
  check->checked = what;
  check->started_ns = op.started_ns;
  check->given_up = true;
  queue_.push_back(check.get());
  check.release();
  in_flight_.one_more();
}

// The ranks say what they have seen of their links: in the order of execution, in which all know when that is due.
void Operations::report_first(Operation* op) {
  if (!team_.links || op->internal() || std::exchange(op->counted, true) || !team_.links->due(op->work)) return;
  auto report = std::make_unique<Operation>(*op->communicator);
  report->exchange = std::make_unique<LinkExchange>(team_.size());
  report->work = report->exchange->work(op->work.what);
  report->started_ns = now_ns();
  report->given_up = true;
  queue_.push_front(report.get());
  report.release();
  in_flight_.one_more();
}

void Operations::begin(Operation* op) {
  op->started = true;
  if (op->begun_ns == 0) op->begun_ns = now_ns();
  Work& w = op->work;
  if (op->exchange) {
    bool made = false;
    op->plan = team_.plans->of(w, &made);
    op->exchange->mine = team_.links->report(*team_.ports, now_ns());
  }
  // One that was made before a report changed how calls are planned is as good as none.
  if (!op->plan || op->plan->epoch != team_.plans->epoch()) op->plan = plan_of(w);
  if (!op->internal()) team_.flight.carried_out(w.what.sequence, op->plan->algorithm->name.data());
  assert(op->plan->slicing.lanes >= 1 && op->plan->scratch.size() == (op->plan->program ? 1 : op->plan->slicing.lanes));
  std::byte* const staging = op->plan->program || !op->plan->algorithm->stages || op->plan->slicing.lanes > 1
                                 ? nullptr
                                 : team_.ports->staging(op->plan->scratch[0] * w.elements.bytes);
  if (!staging) scratch_.reserve(op->plan->scratch, w.elements.bytes);
  if (op->plan->program) {
    w.memory.base[std::size_t(Buffer::scratch)] = scratch_.lane(0);
    op->replaying = true;
    op->replay.begin(*op->plan->program, w.memory, w.elements, w.what.signature());
    return;
  }
  std::vector<std::byte*> scratch;
  for (Count lane = 0; lane < kLanesMax; ++lane) scratch.push_back(staging ? staging : scratch_.lane(lane));
  op->flow.emplace(*team_.ports,
                   Flow::Work{.signature = w.what.signature(),
                              .memory = w.memory,
                              .scratch = std::move(scratch),
                              .elements = &w.elements,
                              .hints = team_.size() == 2 && has_root(w.call.kind) ? hint_of_one_way(*op) : 0});
  for (Count lane = 0; lane < op->plan->slicing.lanes; ++lane)
    op->flow->add(sliced(op->plan->algorithm, w.call, team_.plans->view(), op->plan->slicing.shares, lane,
                         op->plan->slicing.lanes),
                  op->plan->slicing.window);
  op->flow->begin();
}

void Operations::advance_collectives() {
  while (!queue_.empty() && failure_.none()) {
    if (!queue_.front()->started) report_first(queue_.front());
    Operation* const op = queue_.front();
    if (!op->started) begin(op);
    if (op->replaying) {
      const Program::Outcome outcome = op->replay.advance();
      if (outcome == Program::Outcome::blocked) return;
      if (outcome == Program::Outcome::mismatch) {
        const Difference found = op->replay.difference();
        return break_down(calls_differ(team_.members, op->work.what, found), found.peer, true);
      }
      if (outcome == Program::Outcome::failed) {
        const GCCL_Fault f = op->replay.fault();
        return break_down(*op, Status::error(f.text, f.result), f.peer);
      }
    } else {
      if (!op->flow->settle()) return break_down(op->flow_failure(team_.members), team_.rank(), true);
      if (!op->flow->done()) return;
    }
    if (op->comparison && op->comparison->needs_histories()) {  // every rank has found the same, and does the same
      op->start_again();
      op->compare(Comparison::of_histories(team_.members, team_.record->history, op->work.what.sequence),
                  team_.members);
      recorder_.number(op->work);
      continue;
    }
    if (op->comparison && op->comparison->needs_failures()) {  // likewise
      go_on_as(op, op->comparison->of_failures(team_.members));
      continue;
    }
    if (op->comparison && op->comparison->needs_lengths()) {  // likewise
      assert(queue_.size() > 1 && queue_[1]->work.lengths);   // of the call that it precedes
      go_on_as(op, Comparison::of_lengths(team_.members, *queue_[1]->work.lengths));
      continue;
    }
    if (team_.world->check > 1 && !op->internal() && compare_results(op)) continue;
    queue_.pop_front();
    finish(op, {});
  }
}

// The call goes on as the comparison of its results. False: these may differ.
bool Operations::compare_results(Operation* op) {
  if (!Comparison::has_one_result(op->work) || team_.size() == 1) return false;
  op->work.conclude(team_.members);
  Comparison comparison = Comparison::of_results(team_.members, op->work);
  recorder_.moved(*op, true);
  const Descriptor call = op->work.what;
  go_on_as(op, std::move(comparison));
  op->checked = call;
  return true;
}

// The operation goes on as this comparison, which has its number.
void Operations::go_on_as(Operation* op, Comparison&& comparison) {
  const std::uint32_t sequence = op->work.what.sequence;
  op->start_again();
  op->compare(std::move(comparison), team_.members);
  op->work.what.sequence = sequence;
}

// What is left to do once all has moved, and how it ended then.
Status Operations::concluded(Operation* op) {
  if (op->exchange) {
    recorder_.links_changed(team_.links->take(op->exchange->all), team_.links->health());
    if (team_.links->plans_change()) {
      team_.plans->avoid(team_.links->to_avoid());
      recorder_.metrics().plans_changed();
    }
    return {};
  }
  if (!op->comparison) {
    op->work.conclude(team_.members);
    return {};
  }
  Comparison::Found found = op->comparison->found(team_.members, op->work, team_.world.get());
  if (!found.why.ok() && found.breaks) {
    if (failure_.none()) team_.flight.failed(op->work.what.sequence);
    break_down(found.why, found.culprit, false);
  }
  return op->comparison->frees() || op->comparison->ends_call() ? std::move(found.why) : Status();
}

// In no list of the communicator's any more.
void Operations::finish(Operation* op, Status status) noexcept {
  assert(op->stage.load(std::memory_order_relaxed) == Operation::Stage::pending && !op->transferring);
  assert(in_flight_.count() > 0);
  const Descriptor& what = op->work.what;
  if (status.ok()) try {
      status = concluded(op);
    } catch (...) {
      status = in_context(team_.members, what, caught());
      if (failure_.none() && !what.point_to_point()) team_.flight.failed(what.sequence);
      break_down(status.copy_or_code(), team_.rank(), true);
    }
  recorder_.ended(*op, status.ok());
  if ((op->blocking || op->stall.reported()) && team_.record->watched) {
    team_.record->watched = false;
    team_.world->watch->over(*team_.record);
  }
  if (!status.ok()) op->said = failure_.said();
  op->flow.reset();
  op->plan.reset();
  op->status = std::move(status);
  in_flight_.one_less();
  if (!op->functions.empty()) {
    completions::ended(op);
  } else if (op->given_up) {
    delete op;
  } else {
    op->stage.store(Operation::Stage::complete, std::memory_order_release);
  }
}

// An I-form's sender computes, perhaps, and other operations in flight are a use for its time.
std::uint32_t Operations::hint_of_one_way(const Operation& op) const {
  return op.work.blocking && in_flight_.count() == 1 ? GCCL_HINT_ONE_WAY : 0;
}

void Operations::begin_transfer(Operation* op) {
  op->started = true;
  Work& w = op->work;
  assert(w.what.root < team_.size());
  if (user_defined(w.what.dtype)) w.what.element_bytes = w.elements.bytes;
  const bool sends = w.what.kind == kSendKind;
  op->message = team_.record->messages.count(sends, w.what.root);
  if (w.what.root == team_.rank()) return begin_to_myself(op);
  GCCL_Transfer& t = op->transfer;
  t.peer = w.what.root;
  t.channel = kPointToPointChannel;
  t.data = w.memory.base[std::size_t(sends ? Buffer::input : Buffer::output)];
  t.bytes = w.what.bytes;
  t.signature = w.what.signature();
  t.grain = w.elements.bytes;
  t.hints = hint_of_one_way(*op) | GCCL_HINT_FRESH;
  t.owner = op;
  t.cookie = kPointToPointCookie;
  Ports::Port& port = team_.ports->to(t.peer);
  transfers_.push_back(op);
  const int now = sends ? port.backend->send(port.state, &t) : port.backend->receive(port.state, &t);
  assert(now == 0 || (now == 1 && t.result != GCCL_IN_PROGRESS));
  if (now == 0) {
    ++port.in_flight;
    op->transferring = true;
    return;
  }
  end_transfer(op);
}

void Operations::end_transfer(Operation* op) {
  const GCCL_Transfer& t = op->transfer;
  if (t.result != GCCL_SUCCESS) {
    const std::string theirs =
        t.result == GCCL_ERR_MISMATCH
            ? fmt::format("it sends {} bytes ({})", t.bytes_found,
                          text_of_signature(t.signature_found, {team_.record->history.last(), team_.size()}))
            : "the transfer failed";
    return break_down(*op, Status::error(theirs, t.result), t.peer);
  }
  transfers_.erase(op);
  if (!transfers_.empty()) team_.record->messages.ended(op->work.what.kind == kSendKind, t.peer, now_ns());
  finish(op, {});
}

void Operations::begin_to_myself(Operation* op) {
  Status differ;
  Operation* other = nullptr;
  const bool over = to_myself_.meet(op, team_.members, &other, &differ);
  if (!differ.ok()) return break_down(std::move(differ), team_.rank(), true);
  if (other) finish(other, {});
  if (over) finish(op, {});
  while (Operation* const kept = to_myself_.keep_waiting()) finish(kept, {});
}

Progress Operations::make_progress() noexcept {
  try {
    return advance();
  } catch (...) {
    break_down(blamed(caught()), team_.rank(), true);
    return Progress::something;
  }
}

Progress Operations::advance() {
  if (!failure_.none()) return Progress::nothing;
  if (failure_.abort_asked()) {
    break_down(failure_.aborted(team_.members), team_.rank(), true);
    failure_.acknowledge();
    return Progress::something;
  }
  bool moved = false;
  for (Ports::Port& port : team_.ports->all()) {
    if (port.in_flight == 0) continue;
    moved |= poll(port);
    if (!failure_.none()) return Progress::something;
  }
  const std::size_t before = queue_.size();
  advance_collectives();
  if (moved || queue_.size() != before) return Progress::something;
  return flows() ? Progress::bytes : Progress::nothing;
}

// A long message may take longer than a wait stays awake, and its bytes need a thread that polls. At a rate at which so
// many do not come while it does, what a socket or a pipe holds lasts for the sleeps.
bool Operations::flows() {
  const std::uint64_t now = team_.ports->moved_bytes();
  if (now - moved_bytes_ < kFlowBytes) return false;
  moved_bytes_ = now;
  return true;
}

bool Operations::poll(Ports::Port& port) {
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
    if (done[i]->cookie == kPointToPointCookie) {
      end_transfer(static_cast<Operation*>(done[i]->owner));
    } else if (!static_cast<Flow*>(done[i]->owner)->completed(done[i])) {
      break_down(queue_.front()->flow_failure(team_.members), done[i]->peer, true);
    }
  }
  return n > 0;
}

void Operations::break_down(Status why, Rank culprit, bool report_to_others, std::vector<Rank> ranks) noexcept {
  assert(locked());
  if (!failure_.none()) return;
  failure_.set(std::move(why), culprit, std::move(ranks));
  team_.flight.stopped(now_ns());
  if (team_.record) team_.record->broken.store(true, std::memory_order_relaxed);
  // Also where all have found the same: a peer that still reads what this rank sends must stop before it is taken back.
  if ((report_to_others || !transfers_.empty()) && team_.ports) {
    GCCL_Fault f{.result = failure_.why().code(), .peer = culprit, .text = {}};
    put_shortened(f.text, failure_.why().text());
    abort_ports(*team_.ports, f);
  }
  dump_failure(team_, *this);
  keep_unended(team_, *this);
  drop_all();
}

void Operations::close(Status why) noexcept {
  assert(locked());
  if (!failure_.none()) return;
  failure_.set(std::move(why), team_.rank());
  if (team_.record) team_.record->broken.store(true, std::memory_order_relaxed);
  drop_all();
}

void Operations::drop_all() noexcept {
  const auto end = [this](auto& operations) {
    for (Operation* op : operations) drop(op);
    operations.clear();
  };
  end(queue_);
  while (!transfers_.empty()) {
    Operation* const op = transfers_.front();
    transfers_.erase(op);
    drop(op);
  }
  end(to_myself_.waiting());
}

void Operations::break_down(const GCCL_Fault& fault) { break_down(reason(team_, first(), fault), fault.peer, true); }

void Operations::break_down(const Operation& op, Status why, Rank culprit) noexcept {
  if (failure_.none() && !op.work.what.point_to_point() && op.work.what.sequence > 0)
    team_.flight.failed(op.work.what.sequence);
  break_down(in_context(team_.members, op, std::move(why)), culprit, true);
}

Status Operations::blamed(Status why) const noexcept {
  if (queue_.empty()) return why;
  return in_context(team_.members, *queue_.front(), std::move(why));
}

void Operations::drop(Operation* op) noexcept {
  if (op->transferring) {
    Ports::Port& port = team_.ports->to(op->transfer.peer);
    port.backend->cancel(port.state, &op->transfer);
    --port.in_flight;
    op->transferring = false;
  }
  finish(op, failure_.why().copy_or_code());
}

}  // namespace gccl
