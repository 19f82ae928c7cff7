// An operation from its start to its end: collectives in their order, point to point beside them.
#include <algorithm>
#include <cstring>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator.hpp"
#include "libgccl/communicator/completions.hpp"
#include "libgccl/elements/combine.hpp"

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
  world_->watch->used_by_this_thread();
  std::lock_guard lock(lock_);
  if (abort_asked_.load(std::memory_order_relaxed)) move();
  if (!broken_.ok()) {
    told_ = true;
    return broken_;
  }
  GCCL_Call_metrics& m = metrics_.calls[op->work.what.kind];
  op->started_ns = now_ns();
  if (m.calls % 16 == 0 || op->work.what.bytes >= kTimedBytes) op->timed_from_ns = op->started_ns;
  try {
    enqueue(op.get());
  } catch (...) {
    break_down(named(op->work, caught()), rank(), true);  // the queue holds it no longer
    told_ = true;
    return broken_;
  }
  *out = op.release();
  return {};
}

void Communicator::enqueue(Operation* op) {
  active_.fetch_add(1, std::memory_order_relaxed);
  if (op->work.what.point_to_point()) return begin_transfer(op);
  number(op->work);
  if (world_->check && size() > 1) check_first(op);
  queue_.push_back(op);
  advance_front();
}

void Communicator::number(Work& work) {
  Descriptor& what = work.what;
  what.sequence = ++sequence_;
  if (what.dtype >= 1000) what.element_bytes = work.elements.bytes;
  record_->history.add(what.sequence, what.signature(), History::call_of(what));
  if (work.call.kind == Collective::alltoallv)
    world_->watch->exchanges(*record_, what.sequence, work.lengths->send_counts, work.lengths->recv_counts);
}

void Communicator::begin(Operation* op) {
  op->started = true;
  Work& w = op->work;
  if (!op->plan) op->plan = plan_of(w);
  grow_scratch(*op->plan, w.elements.bytes);
  if (op->plan->program) {
    w.memory.base[std::size_t(Buffer::scratch)] = scratch_[0].get();
    op->replaying = true;
    op->replay.begin(*op->plan->program, shm_, w.memory, w.elements, w.what.signature());
    return;
  }
  std::vector<std::byte*> scratch;
  for (auto& s : scratch_) scratch.push_back(s.get());
  op->flow.emplace(*ports_, Flow::Work{.signature = w.what.signature(),
                                       .memory = w.memory,
                                       .scratch = std::move(scratch),
                                       .elements = &w.elements,
                                       .hints = size() == 2 && has_root(w.call.kind) ? GCCL_HINT_ONE_WAY : 0});
  for (Count lane = 0; lane < op->plan->slicing.lanes; ++lane)
    op->flow->add(
        sliced(op->plan->algorithm, w.call, setting_.view, op->plan->slicing.shares, lane, op->plan->slicing.lanes),
        op->plan->slicing.window);
  op->flow->begin();
}

void Communicator::advance_front() {
  while (!queue_.empty() && broken_.ok()) {
    Operation* const op = queue_.front();
    if (!op->started) begin(op);
    if (op->replaying) {
      const Replay::Outcome outcome = op->replay.advance();
      if (outcome == Replay::Outcome::blocked) return;
      if (outcome == Replay::Outcome::mismatch) {
        const Program::Step& s = op->replay.step();
        return break_down(differs(op->work, {.peer = s.peer,
                                             .signature = op->replay.signature_found(),
                                             .bytes = op->replay.bytes_found(),
                                             .bytes_due = s.bytes}),
                          s.peer, true);
      }
      if (outcome == Replay::Outcome::no_room)
        return break_down(
            named(op->work, Status::error(shm_->text_of_no_memory(*op->replay.step().end), GCCL_ERR_SYSTEM)), rank(),
            true);
      if (outcome == Replay::Outcome::damaged) {
        const Program::Step& s = op->replay.step();
        const std::string text = shm_->text_of_damage(*s.end, *s.end->reader.peek());
        return break_down(named(op->work, Status::error(text, GCCL_ERR_SYSTEM)), s.peer, true);
      }
    } else {
      if (!op->flow->settle()) return break_down(failure(*op), rank(), true);
      if (!op->flow->done()) return;
    }
    if (op->checks == Operation::Checks::digests && differ_in_digests(*op)) {
      gather_histories(op);
      continue;
    }
    queue_.pop_front();
    finish(op, op->checks == Operation::Checks::histories ? compare_histories(*op)
               : op->checks == Operation::Checks::digests ? compare_others(*op)
                                                          : Status());
  }
}

// The end of the work itself.
void Communicator::conclude(Work& w) {
  std::byte* const out = w.memory.base[std::size_t(Buffer::output)];
  const Region result = reduces(w.call.kind) ? output_of(w.call, size(), rank()) : Region{};
  if (w.what.op == GCCL_AVG && result.count > 0)
    divide(w.elements.dtype, out + result.offset * w.elements.bytes, result.count, size());
  if (w.to_first_block && result.count > 0)
    std::memmove(out, out + result.offset * w.elements.bytes, result.count * w.elements.bytes);
}

void Communicator::count(const Descriptor& what, std::int64_t from_ns, bool failed) {
  GCCL_Call_metrics& m = metrics_.calls[what.kind];
  ++m.calls;
  m.failed += failed;
  m.bytes += what.bytes;
  if (from_ns == 0) return;
  const std::uint64_t took = std::uint64_t(now_ns() - from_ns);
  m.time_ns += took;
  m.time_ns_min = m.timed == 0 ? took : std::min(m.time_ns_min, took);
  m.time_ns_max = std::max(m.time_ns_max, took);
  ++m.timed;
}

void Communicator::count(const Traffic& t) {
  metrics_.messages_sent += t.messages_sent;
  metrics_.messages_received += t.messages_received;
  metrics_.bytes_sent += t.bytes_sent;
  metrics_.bytes_received += t.bytes_received;
}

void Communicator::finish(Operation* op, Status status) {
  if (op->replaying && status.ok()) count(op->plan->program->traffic);
  if (op->flow) count(op->flow->traffic());
  if (op->work.what.point_to_point() && op->work.what.root != rank() && status.ok()) {
    Traffic t;
    (op->work.what.kind == kSendKind ? t.messages_sent : t.messages_received) = 1;
    (op->work.what.kind == kSendKind ? t.bytes_sent : t.bytes_received) = op->work.what.bytes;
    count(t);
  }
  if (op == stall_.operation) {
    if (stall_.watched) world_->watch->over(*record_);
    stall_ = {};
  }
  if (!status.ok() && !op->given_up) told_ = true;
  if (op->checks == Operation::Checks::descriptions) {
    if (status.ok()) compare_checks(op);
  } else if (op->checks == Operation::Checks::lengths) {
    if (status.ok()) compare_lengths(op);
  } else if (op->checks == Operation::Checks::nothing) {
    if (status.ok()) conclude(op->work);
    count(op->work.what, op->timed_from_ns, !status.ok());
  }
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
  if (w.what.dtype >= 1000) w.what.element_bytes = w.elements.bytes;
  if (w.what.root == rank()) {
    meet_myself(op);
    return;
  }
  const bool sends = w.what.kind == kSendKind;
  count_message(sends, w.what.root);
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
  Ports::Port& port = ports_->to(t.peer);
  transfers_.push_back(op);
  const int now = sends ? port.backend->send(port.state, &t) : port.backend->receive(port.state, &t);
  if (now == 0) {
    ++port.under_way;
    op->transferring = true;
    return;
  }
  std::erase(transfers_, op);
  if (t.result != GCCL_SUCCESS) {
    transfers_.push_back(op);
    const std::string theirs = t.result == GCCL_ERR_MISMATCH
                                   ? "it sends " + std::to_string(t.bytes_found) + " bytes (" +
                                         text_of_signature(t.signature_found, {sequence_, size()}) + ")"
                                   : "the transfer failed";
    return break_down(named(w, Status::error(theirs, t.result)), t.peer, true);
  }
  finish(op, {});
}

// Messages to myself: copied when both sides are there.
bool Communicator::meet_myself(Operation* op) {
  const bool sends = op->work.what.kind == kSendKind;
  auto& others = sends ? self_recvs_ : self_sends_;
  if (others.empty()) {
    (sends ? self_sends_ : self_recvs_).push_back(op);
    return false;
  }
  Operation* const other = others.front();
  others.pop_front();
  const Work &from = sends ? op->work : other->work, &to = sends ? other->work : op->work;
  if (from.what.signature() != to.what.signature()) {
    (sends ? self_sends_ : self_recvs_).push_back(op);
    others.push_front(other);
    break_down(named(to, Status::error("the message is " + from.what.text(), GCCL_ERR_MISMATCH)), rank(), true);
    return false;
  }
  if (from.what.bytes)
    std::memcpy(to.memory.base[std::size_t(Buffer::output)], from.memory.base[std::size_t(Buffer::input)],
                from.what.bytes);
  finish(other, {});
  finish(op, {});
  return true;
}

}  // namespace gccl
