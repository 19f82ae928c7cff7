// An operation from its start to its end: collectives in their order, point to point concurrently.
#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

Status Communicator::start(Work&& work, Operation** out, std::shared_ptr<PreparedPlan> plan) {
  *out = nullptr;
  auto op = std::make_unique<Operation>(*this);
  op->work = std::move(work);
  op->plan = std::move(plan);
  return start(std::move(op), out);
}

Status Communicator::start(std::unique_ptr<Operation> op, Operation** out) {
  *out = nullptr;
  std::lock_guard lock(lock_);
  if (failure_.abort_asked()) make_progress();
  if (!failure_.none()) return failure_.returned();
  op->started_ns = now_ns();
  if (metrics_.times(op->work.what)) op->timed_from_ns = op->started_ns;
  try {
    enqueue(op.get());
  } catch (...) {
    break_down(*op, caught(), rank());
    if (op->stage.load(std::memory_order_relaxed) ==
        Operation::Stage::pending) {  // it was in no list, or broken before
      std::erase(queue_, op.get());
      std::erase(transfers_, op.get());
      std::erase(to_myself_, op.get());
      active_.fetch_sub(1, std::memory_order_relaxed);
    }
    return failure_.returned();
  }
  *out = op.release();
  return {};
}

void Communicator::enqueue(Operation* op) {
  assert(!op->started && failure_.none());
  active_.fetch_add(1, std::memory_order_relaxed);
  if (op->work.what.point_to_point()) return begin_transfer(op);
  number(op->work);
  if (team_.world->check && size() > 1) check_first(*op);
  queue_.push_back(op);
  advance_front();
}

// The ranks compare what they call before they carry it out.
void Communicator::check_first(const Operation& op) {
  const auto add = [&](Comparison&& comparison) {
    auto check = std::make_unique<Operation>(*this);
    check->compare(std::move(comparison), team_.members);
    check->work.what.sequence = op.work.what.sequence;
    check->started_ns = op.started_ns;
    check->given_up = true;
    queue_.push_back(check.get());
    check.release();
    active_.fetch_add(1, std::memory_order_relaxed);
  };
  add(Comparison::of_descriptions(team_.members, op.work.what));
  if (op.work.call.kind == Collective::alltoallv) add(Comparison::of_lengths(team_.members, *op.work.lengths));
}

// The call's place in the order of all.
void Communicator::number(Work& work) {
  Descriptor& what = work.what;
  what.sequence = team_.record->history.last() + 1;
  if (what.dtype >= 1000) what.element_bytes = work.elements.bytes;
  team_.record->history.add(what.sequence, what.signature(), History::call_of(what));
  team_.flight.began(what.sequence, nullptr);
  if (work.call.kind == Collective::alltoallv)
    team_.world->watch->exchanges(*team_.record, what.sequence, work.lengths->send_counts, work.lengths->recv_counts);
}

void Communicator::begin(Operation* op) {
  op->started = true;
  Work& w = op->work;
  if (!op->plan) op->plan = plan_of(w);
  if (!op->comparison) team_.flight.carried_out(w.what.sequence, op->plan->algorithm->name.data());
  assert(op->plan->slicing.lanes >= 1 && op->plan->scratch.size() == (op->plan->program ? 1 : op->plan->slicing.lanes));
  scratch_.reserve(op->plan->scratch, w.elements.bytes);
  if (op->plan->program) {
    w.memory.base[std::size_t(Buffer::scratch)] = scratch_.lane(0);
    op->replaying = true;
    op->replay.begin(*op->plan->program, w.memory, w.elements, w.what.signature());
    return;
  }
  std::vector<std::byte*> scratch;
  for (Count lane = 0; lane < kLanesMax; ++lane) scratch.push_back(scratch_.lane(lane));
  op->flow.emplace(*team_.ports, Flow::Work{.signature = w.what.signature(),
                                            .memory = w.memory,
                                            .scratch = std::move(scratch),
                                            .elements = &w.elements,
                                            .hints = size() == 2 && has_root(w.call.kind) ? GCCL_HINT_ONE_WAY : 0});
  for (Count lane = 0; lane < op->plan->slicing.lanes; ++lane)
    op->flow->add(sliced(op->plan->algorithm, w.call, team_.plans->view(), op->plan->slicing.shares, lane,
                         op->plan->slicing.lanes),
                  op->plan->slicing.window);
  op->flow->begin();
}

void Communicator::advance_front() {
  while (!queue_.empty() && failure_.none()) {
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
      if (!op->flow->settle()) return break_down(op->flow_failure(team_.members), rank(), true);
      if (!op->flow->done()) return;
    }
    if (op->comparison && op->comparison->needs_histories()) {  // every rank has found the same, and does the same
      op->start_again();
      op->compare(Comparison::of_histories(team_.members, team_.record->history, op->work.what.sequence),
                  team_.members);
      number(op->work);
      continue;
    }
    if (team_.world->check > 1 && !op->comparison && compare_results(op)) continue;
    queue_.pop_front();
    finish(op, {});
  }
}

// The call goes on as the comparison of its results. False: these may differ.
bool Communicator::compare_results(Operation* op) {
  if (!Comparison::has_one_result(op->work) || size() == 1) return false;
  op->work.conclude(team_.members);
  Comparison comparison = Comparison::of_results(team_.members, op->work);
  metrics_.ended(op->work.what, op->timed_from_ns, false);
  if (op->replaying) metrics_.moved(op->plan->program->traffic);
  if (op->flow) metrics_.moved(op->flow->traffic());
  const std::uint32_t sequence = op->work.what.sequence;
  team_.flight.ended(sequence);
  op->start_again();
  op->compare(std::move(comparison), team_.members);
  op->work.what.sequence = sequence;
  return true;
}

// What is left to do once all has moved, and how it ended then.
Status Communicator::concluded(Operation* op) {
  if (!op->comparison) {
    op->work.conclude(team_.members);
    return {};
  }
  Comparison::Found found = op->comparison->found(team_.members, op->work, team_.world.get());
  if (!found.why.ok() && found.breaks) break_down(found.why, found.culprit, found.tell);
  return op->comparison->frees() || op->comparison->ends_call() ? std::move(found.why) : Status();
}

// In no list of the communicator's any more.
void Communicator::finish(Operation* op, Status status) noexcept {
  assert(op->stage.load(std::memory_order_relaxed) == Operation::Stage::pending && !op->transferring);
  assert(active_.load(std::memory_order_relaxed) > 0);
  const Descriptor& what = op->work.what;
  if (status.ok()) try {
      status = concluded(op);
    } catch (...) {
      status = in_context(what, caught());
      break_down(status.copy_or_code(), rank(), true);
    }
  if (op->replaying && status.ok()) metrics_.moved(op->plan->program->traffic);
  if (op->flow) metrics_.moved(op->flow->traffic());
  if (what.point_to_point() && what.root != rank() && status.ok()) metrics_.moved(what);
  if (op->stall.told()) team_.world->watch->over(*team_.record);
  if (!op->comparison) metrics_.ended(what, op->timed_from_ns, !status.ok());
  if (!op->comparison && !what.point_to_point() && status.ok()) team_.flight.ended(what.sequence);
  if (!status.ok()) op->said = failure_.said();
  op->flow.reset();
  op->plan.reset();
  op->status = std::move(status);
  active_.fetch_sub(1, std::memory_order_relaxed);
  if (!op->functions.empty()) {
    completions::ended(op);
  } else if (op->given_up) {
    delete op;
  } else {
    op->stage.store(Operation::Stage::complete, std::memory_order_release);
  }
}

void Communicator::begin_transfer(Operation* op) {
  op->started = true;
  Work& w = op->work;
  assert(w.what.root < size());
  if (w.what.dtype >= 1000) w.what.element_bytes = w.elements.bytes;
  if (w.what.root == rank()) {
    begin_to_myself(op);
    return;
  }
  const bool sends = w.what.kind == kSendKind;
  team_.record->messages.count(sends, w.what.root);
  GCCL_Transfer& t = op->transfer;
  t.peer = w.what.root;
  t.channel = kPointToPointChannel;
  t.data = w.memory.base[std::size_t(sends ? Buffer::input : Buffer::output)];
  t.bytes = w.what.bytes;
  t.signature = w.what.signature();
  t.grain = w.elements.bytes;
  t.hints = GCCL_HINT_ONE_WAY | GCCL_HINT_FRESH;
  t.owner = op;
  t.cookie = kPointToPointCookie;
  Ports::Port& port = team_.ports->to(t.peer);
  transfers_.push_back(op);
  const int now = sends ? port.backend->send(port.state, &t) : port.backend->receive(port.state, &t);
  if (now == 0) {
    ++port.in_flight;
    op->transferring = true;
    return;
  }
  std::erase(transfers_, op);
  if (t.result != GCCL_SUCCESS) {
    transfers_.push_back(op);
    const std::string theirs =
        t.result == GCCL_ERR_MISMATCH
            ? fmt::format("it sends {} bytes ({})", t.bytes_found,
                          text_of_signature(t.signature_found, {team_.record->history.last(), size()}))
            : "the transfer failed";
    return break_down(*op, Status::error(theirs, t.result), t.peer);
  }
  finish(op, {});
}

// Messages to myself: copied when both sides are there.
void Communicator::begin_to_myself(Operation* op) {
  const bool sends = op->work.what.kind == kSendKind;
  if (to_myself_.empty() || to_myself_.front()->work.what.kind == op->work.what.kind) {
    to_myself_.push_back(op);
    return;
  }
  Operation* const other = to_myself_.front();
  const Work &from = sends ? op->work : other->work, &to = sends ? other->work : op->work;
  // User-defined types have one signature, and counts are folded into it.
  if (from.what.signature() != to.what.signature() || from.what.bytes != to.what.bytes) {
    to_myself_.push_back(op);
    const std::string sizes = fmt::format(" of {} bytes, and {} are due", from.what.bytes, to.what.bytes);
    return break_down(
        team_.members.in_context(
            to.what, Status::error(fmt::format("the message is {}{}", from.what.text(), sizes), GCCL_ERR_MISMATCH)),
        rank(), true);
  }
  to_myself_.pop_front();
  if (from.what.bytes)
    std::memcpy(to.memory.base[std::size_t(Buffer::output)], from.memory.base[std::size_t(Buffer::input)],
                from.what.bytes);
  finish(other, {});
  finish(op, {});
}

}  // namespace gccl
