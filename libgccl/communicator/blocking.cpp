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
  if (plan->slicing.shares == 1 && (shm_ || size() == 1)) {
    const Share whole{};
    plan->scratch.push_back(plan->algorithm->scratch_count(call, setting_.view, whole));
    plan->program = Program::compile(plan->algorithm->make(call, setting_.view, whole), element_bytes, size(), shm_);
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

bool Communicator::quick(const Key& key, const void* input, void* output, bool* started) {
  *started = false;
  world_->watch->used_by_this_thread();
  Repeat& r = repeats_[key.kind];
  lock_.lock();
  // What is under way, broken or checked goes the long way, and so do functions that are due.
  if (!(r.key == key) || active_.load(std::memory_order_relaxed) != 0 || abort_asked_.load(std::memory_order_relaxed) ||
      completions::due()) {
    lock_.unlock();
    return false;
  }
  Work& w = r.work;
  w.what.sequence = ++sequence_;
  const std::uint64_t signature = Descriptor::at_sequence(r.signature, sequence_);
  record_->history.add(sequence_, signature, r.call);
  GCCL_Call_metrics& m = metrics_.calls[key.kind];
  const std::int64_t from_ns = m.calls % 16 == 0 ? now_ns() : 0;
  Replay replay;
  const Memory memory{
      {nullptr, static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output), scratch_[0].get()}};
  replay.begin(*r.plan->program, shm_, memory, w.elements, signature);
  Patience patience(world_->crowded);
  for (;;) {
    Replay::Outcome outcome;
    try {
      outcome = replay.advance();
    } catch (...) {
      lock_.unlock();
      throw;
    }
    if (outcome == Replay::Outcome::done) {
      if (w.what.op == GCCL_AVG || w.to_first_block) {
        w.memory = memory;
        conclude(w);
      }
      ++metrics_.plans_reused;
      count(w.what, from_ns, false);
      count(r.plan->program->traffic);
      metrics_.waits_yielded += patience.yields();
      lock_.unlock();
      return true;
    }
    if (outcome != Replay::Outcome::blocked || patience.pause()) break;
  }
  metrics_.waits_yielded += patience.yields();
  *started = true;
  w.memory = memory;
  interrupted_ = replay;
  interrupted_from_ns_ = from_ns;
  return false;  // the lock stays: finish_quick() has it
}

bool Communicator::quick_transfer(const Descriptor& what, void* data) {
  const bool sends = what.kind == kSendKind;
  const Rank peer = what.root;
  if (!shm_ || what.bytes > kProgramBytesMax || peer >= size() || peer == rank()) return false;
  world_->watch->used_by_this_thread();
  std::lock_guard lock(lock_);
  if (active_.load(std::memory_order_relaxed) != 0 || abort_asked_.load(std::memory_order_relaxed) || !broken_.ok() ||
      completions::due())
    return false;
  GCCL_Call_metrics& m = metrics_.calls[what.kind];
  const std::int64_t from_ns = m.calls % 16 == 0 ? now_ns() : 0;
  shm::End& end = *shm_->end(peer, kPointToPointChannel, !sends);
  const std::uint64_t signature = what.signature();
  const auto bytes = std::uint32_t(what.bytes);
  Traffic traffic;
  if (sends) {
    if (shm_->put(end, signature, data, bytes) != shm::Port::Put::done) return false;
    traffic.messages_sent = 1;
    traffic.bytes_sent = bytes;
  } else {
    const shm::Cell* c = end.reader.peek();
    for (Patience patience(world_->crowded); !c && !patience.pause();) c = end.reader.peek();
    if (!c || c->signature != signature || c->piece_bytes != bytes) return false;
    const std::span<const std::byte> message = end.reader.piece(*c, 0, bytes);
    if (!message.data()) return false;
    if (c->kind == shm::CellKind::inline_data) {
      shm::copy_short(data, message.data(), bytes);
      end.reader.pop_inline();
    } else {
      std::memcpy(data, message.data(), message.size());
      end.reader.pop_piece(bytes, bytes);
    }
    traffic.messages_received = 1;
    traffic.bytes_received = bytes;
  }
  count_message(sends, peer);
  count(traffic);
  count(what, from_ns, false);
  return true;
}

Status Communicator::finish_quick(const Key& key) {
  std::unique_lock lock(lock_, std::adopt_lock);
  Repeat& r = repeats_[key.kind];
  ++metrics_.plans_reused;
  Work work;
  work.what = r.work.what;
  work.elements = r.work.elements;
  work.call = r.work.call;
  work.memory = r.work.memory;
  work.to_first_block = r.work.to_first_block;
  return run_on(std::move(work), interrupted_, r.plan, interrupted_from_ns_, lock);
}

// It takes longer: it becomes an operation like any other.
Status Communicator::run_on(Work&& work, const Replay& replay, std::shared_ptr<PreparedPlan> plan, std::int64_t from_ns,
                            std::unique_lock<SpinLock>& lock) {
  auto* const op = new Operation(*this);
  op->plan = std::move(plan);
  op->work = std::move(work);
  op->replay = replay;
  op->replay.rebind(op->work.elements);
  op->started = op->replaying = true;
  op->timed_from_ns = from_ns;
  op->started_ns = now_ns();
  active_.fetch_add(1, std::memory_order_relaxed);
  queue_.push_back(op);
  lock.unlock();
  Status status;
  wait(op, -1, &status);
  return status;
}

Status Communicator::run(Work&& work, const Key* key) {
  world_->watch->used_by_this_thread();
  std::unique_lock lock(lock_);
  std::shared_ptr<PreparedPlan> plan;
  if (broken_.ok() && !abort_asked_.load(std::memory_order_relaxed) && queue_.empty() && !work.what.point_to_point() &&
      !world_->check) {
    try {
      plan = plan_of(work);
      if (plan->program) return run_program(std::move(work), plan, key, lock);
    } catch (...) {
      if (!lock) throw;
      break_down(named(work, caught()), rank(), true);
      told_ = true;
      return broken_;
    }
  }
  lock.unlock();
  Operation* op = nullptr;
  Status s = start(std::move(work), &op, std::move(plan));
  if (s.ok()) wait(op, -1, &s);
  return s;
}

Status Communicator::run_program(Work&& work, const std::shared_ptr<PreparedPlan>& plan, const Key* key,
                                 std::unique_lock<SpinLock>& lock) {
  number(work);
  const GCCL_Call_metrics& m = metrics_.calls[work.what.kind];
  const bool timed = m.calls % 16 == 0 || work.what.bytes >= kTimedBytes;
  const std::int64_t from_ns = timed ? now_ns() : 0;
  Replay replay;
  if (!run_replay(work, *plan, &replay)) return run_on(std::move(work), replay, plan, from_ns, lock);
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
  lock.unlock();
  completions::run();
  return {};
}

// Spins for a few microseconds, with the lock held.
bool Communicator::run_replay(Work& work, PreparedPlan& plan, Replay* replay) {
  grow_scratch(plan, work.elements.bytes);
  work.memory.base[std::size_t(Buffer::scratch)] = scratch_[0].get();
  replay->begin(*plan.program, shm_, work.memory, work.elements, work.what.signature());
  Patience patience(world_->crowded);
  for (;;) {
    const Replay::Outcome outcome = replay->advance();
    const bool done = outcome == Replay::Outcome::done;
    if (!done && outcome == Replay::Outcome::blocked && !patience.pause() &&
        !abort_asked_.load(std::memory_order_relaxed))
      continue;
    metrics_.waits_yielded += patience.yields();
    return done;
  }
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
