// Plans, and the short way of blocking calls: most of a program's calls end here.
#include <algorithm>
#include <cstring>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

const Algorithm* Communicator::chosen(const Call& call, std::uint32_t element_bytes) {
  std::lock_guard lock(lock_);
  return planned(call, element_bytes).algorithm;
}

void Communicator::use_layout(Layout layout) {
  std::lock_guard lock(lock_);
  layout_ = std::move(layout);
  setting_.use(layout_, rank());
  plans_ = {};
  repeats_ = {};
}

Plan Communicator::planned(const Call& call, std::uint32_t element_bytes) {
  setting_.costs.element_bytes = element_bytes;
  Plan p = plan(call, setting_.first, setting_.costs, *setting_.tuning, world_->overrides);
  p.slicing.lanes = std::min(p.slicing.lanes, kLanesMax);
  return p;
}

std::shared_ptr<PreparedPlan> Communicator::plan_for(const Work& work) {
  const Call& call = work.call;
  const std::uint32_t element_bytes = work.elements.bytes;
  auto plan = std::make_shared<PreparedPlan>();
  if (work.algorithm) {
    plan->algorithm = work.algorithm;
    plan->slicing = work.slicing;
    plan->slicing.lanes = std::min({work.slicing.lanes, work.slicing.shares, kLanesMax});
  } else {
    static_cast<Plan&>(*plan) = planned(call, element_bytes);
  }
  if (plan->slicing.shares == 1 && fast_) {
    const Share whole{};
    plan->scratch.push_back(plan->algorithm->scratch_count(call, setting_.view, whole));
    plan->program = fast_->compile(plan->algorithm->make(call, setting_.view, whole), element_bytes);
  } else {
    for (Count lane = 0; lane < plan->slicing.lanes; ++lane)
      plan->scratch.push_back(
          plan->algorithm->scratch_count(call, setting_.view, plan->slicing.shares, lane, plan->slicing.lanes));
  }
  announce(work, *plan);
  return plan;
}

std::shared_ptr<PreparedPlan> Communicator::plan_of(const Work& work) {
  if (work.lengths) {  // which may differ in every call
    ++metrics_.plans_built;
    return plan_for(work);
  }
  const Shape shape{.kind = work.call.kind,
                    .in_place = work.call.in_place,
                    .root = work.call.root,
                    .element_bytes = work.elements.bytes,
                    .count = work.call.count,
                    .algorithm = work.algorithm,
                    .slicing = work.slicing};
  bool found = false;
  std::shared_ptr<PreparedPlan>& plan = plans_.place(shape, &found);
  if (found) {
    ++metrics_.plans_reused;
  } else {
    ++metrics_.plans_built;
    plan = plan_for(work);
  }
  return plan;
}

bool Communicator::repeat(const Key& key, const void* input, void* output, Status* status) {
  world_->watch->used_by_this_thread();
  Repeat& r = repeats_[key.kind];
  std::unique_lock lock(lock_);
  // What is in flight, broken or checked goes the long way, and so do functions that are due.
  if (!(r.key == key) || active_.load(std::memory_order_relaxed) != 0 || abort_asked_.load(std::memory_order_relaxed) ||
      completions::due())
    return false;
  Work& w = r.work;
  w.what.sequence = ++sequence_;
  const std::uint64_t signature = Descriptor::at_sequence(r.signature, sequence_);
  record_->history.add(sequence_, signature, r.call);
  GCCL_Call_metrics& m = metrics_.calls[key.kind];
  const std::int64_t from_ns = m.calls % 16 == 0 ? now_ns() : 0;
  Replay replay;
  const Buffers memory{
      {nullptr, static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output), scratch_[0].get()}};
  replay.begin(*r.plan->program, memory, w.elements, signature);
  Backoff backoff(world_->oversubscribed);
  const Program::Outcome outcome = replay.advance(&backoff);
  ++metrics_.plans_reused;
  metrics_.waits_yielded += backoff.yields();
  if (outcome != Program::Outcome::done) {
    Work work;
    work.what = w.what;
    work.elements = w.elements;
    work.call = w.call;
    work.memory = memory;
    work.to_first_block = w.to_first_block;
    Operation* const op = carry_on_later(std::move(work), replay, r.plan, from_ns);
    lock.unlock();
    return wait(op, -1, status);
  }
  if (w.what.op == GCCL_AVG || w.to_first_block) {
    w.memory = memory;
    conclude(w);
  }
  count(w.what, from_ns, false);
  count(r.plan->program->traffic);
  return true;
}

bool Communicator::quick_transfer(const Descriptor& what, void* data) {
  const bool sends = what.kind == kSendKind;
  const Rank peer = what.root;
  if (!fast_ || what.bytes > kShortBytesMax || peer >= size() || peer == rank()) return false;
  world_->watch->used_by_this_thread();
  std::lock_guard lock(lock_);
  if (active_.load(std::memory_order_relaxed) != 0 || abort_asked_.load(std::memory_order_relaxed) || !broken_.ok() ||
      completions::due())
    return false;
  GCCL_Call_metrics& m = metrics_.calls[what.kind];
  const std::int64_t from_ns = m.calls % 16 == 0 ? now_ns() : 0;
  const auto bytes = std::uint32_t(what.bytes);
  Traffic traffic;
  if (sends) {
    if (!fast_->send(peer, kPointToPointChannel, what.signature(), data, bytes)) return false;
    traffic.messages_sent = 1;
    traffic.bytes_sent = bytes;
  } else {
    Backoff backoff(world_->oversubscribed);
    if (!fast_->receive(peer, kPointToPointChannel, what.signature(), data, bytes, &backoff)) return false;
    traffic.messages_received = 1;
    traffic.bytes_received = bytes;
  }
  count_message(sends, peer);
  count(traffic);
  count(what, from_ns, false);
  return true;
}

// It takes longer: it becomes an operation like any other.
Operation* Communicator::carry_on_later(Work&& work, const Replay& replay, std::shared_ptr<PreparedPlan> plan,
                                        std::int64_t from_ns) {
  auto op = std::make_unique<Operation>(*this);
  op->plan = std::move(plan);
  op->work = std::move(work);
  op->replay = replay;
  op->replay.elements = &op->work.elements;
  op->started = op->replaying = true;
  op->timed_from_ns = from_ns;
  op->started_ns = now_ns();
  queue_.push_back(op.get());
  active_.fetch_add(1, std::memory_order_relaxed);
  return op.release();
}

Status Communicator::run(Work&& work, const Key* key) {
  world_->watch->used_by_this_thread();
  std::unique_lock lock(lock_);
  std::shared_ptr<PreparedPlan> plan;
  Operation* op = nullptr;
  Status status;
  if (broken_.ok() && !abort_asked_.load(std::memory_order_relaxed) && queue_.empty() && !work.what.point_to_point() &&
      !world_->check) {
    try {
      plan = plan_of(work);
      if (plan->program) op = run_program(std::move(work), plan, key);
    } catch (...) {
      break_down(named(work, caught()), rank(), true);
      told_ = true;
      return broken_;
    }
  }
  lock.unlock();
  if (!plan || !plan->program) {
    status = start(std::move(work), &op, std::move(plan));
  } else if (!op) {
    completions::run();
  }
  if (op) wait(op, -1, &status);
  return status;
}

// With the lock held. Null where it is complete.
Operation* Communicator::run_program(Work&& work, const std::shared_ptr<PreparedPlan>& plan, const Key* key) {
  number(work);
  const GCCL_Call_metrics& m = metrics_.calls[work.what.kind];
  const bool timed = m.calls % 16 == 0 || work.what.bytes >= kTimedBytes;
  const std::int64_t from_ns = timed ? now_ns() : 0;
  grow_scratch(*plan, work.elements.bytes);
  work.memory.base[std::size_t(Buffer::scratch)] = scratch_[0].get();
  Replay replay;
  replay.begin(*plan->program, work.memory, work.elements, work.what.signature());
  Backoff backoff(world_->oversubscribed);
  const Program::Outcome outcome = replay.advance(&backoff);
  metrics_.waits_yielded += backoff.yields();
  if (outcome != Program::Outcome::done) return carry_on_later(std::move(work), replay, plan, from_ns);
  conclude(work);
  count(work.what, from_ns, false);
  count(plan->program->traffic);
  if (key && work.what.bytes < kTimedBytes) {
    Repeat& r = repeats_[key->kind];
    r.key = *key;
    r.plan = plan;
    r.signature = work.what.signature();
    r.call = History::call_of(work.what);
    r.work = std::move(work);
  }
  return nullptr;
}

void Communicator::grow_scratch(const PreparedPlan& plan, std::uint32_t element_bytes) {
  for (std::size_t lane = 0; lane < plan.scratch.size(); ++lane) {
    const std::size_t bytes = plan.scratch[lane] * element_bytes;
    if (scratch_bytes_[lane] >= bytes) continue;
    repeats_ = {};           // they hold the old address
    scratch_[lane].reset();  // first, so that old and new never exist at once
    scratch_bytes_[lane] = 0;
    scratch_[lane] = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_[lane] = bytes;
  }
}

}  // namespace gccl
