#include "libgccl/communicator/short_calls.hpp"

#include <cassert>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/breaking.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

// Both are inlined where they are called: at a hundred nanoseconds a call counts.
[[gnu::always_inline]] inline bool ShortCalls::repeat(Of of, const Key& key, const void* input, void* output,
                                                      Operation** later) {
  Repeat& r = repeats_[key.kind];
  // What is in flight, broken or checked goes the long way, and so do functions that are due.
  if (!(r.key == key) || of.operations.busy() || of.operations.failure().stopped() || completions::due()) return false;
  Work& w = r.work;
  Watch::Record& record = *of.team.record;
  Metrics& metrics = of.recorder.metrics();
  const std::uint32_t sequence = w.what.sequence = record.history.last() + 1;
  const std::uint64_t signature = Descriptor::at_sequence(r.signature, sequence);
  record.history.add(sequence, signature, r.call);
  of.team.flight.began_short(sequence, r.plan->algorithm->name.data());
  const std::int64_t from_ns = metrics.times(w.what) ? now_ns() : 0;
  Replay replay;
  const Buffers memory{{nullptr, static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output),
                        of.operations.scratch().lane(0)}};
  replay.begin(*r.plan->program, memory, w.elements, signature);
  Backoff backoff(of.team.world->oversubscribed);
  const Program::Outcome outcome = replay.advance(&backoff);
  metrics.planned(true);
  metrics.waited(backoff);
  if (outcome != Program::Outcome::done) {
    Work work = w.without_lengths();
    work.memory = memory;
    *later = go_on(of.owner, of.operations, std::move(work), replay, r.plan, from_ns);
    return true;
  }
  if (w.what.op == GCCL_AVG || w.to_first_block) {
    w.memory = memory;
    w.conclude(of.team.members);
  }
  metrics.ended(w.what, from_ns, false);
  metrics.moved(r.plan->program->traffic);
  return true;
}

[[gnu::always_inline]] inline bool ShortCalls::transfer(Of of, const Descriptor& what, void* data) {
  const bool sends = what.kind == kSendKind;
  const Rank peer = what.root;
  if (of.operations.busy() || of.operations.failure().stopped() || completions::due()) return false;
  Metrics& metrics = of.recorder.metrics();
  const std::int64_t from_ns = metrics.times(what) ? now_ns() : 0;
  const auto bytes = std::uint32_t(what.bytes);
  Backoff backoff(of.team.world->oversubscribed);
  if (sends ? !of.team.fast->send(peer, kPointToPointChannel, what.signature(), data, bytes)
            : !of.team.fast->receive(peer, kPointToPointChannel, what.signature(), data, bytes, &backoff))
    return false;
  of.team.record->messages.count(sends, peer);
  metrics.moved(what);
  metrics.ended(what, from_ns, false);
  return true;
}

Operation* ShortCalls::run(Of of, Work&& work, const std::shared_ptr<PreparedPlan>& plan, const Key* key) {
  assert(plan && plan->program);
  Metrics& metrics = of.recorder.metrics();
  Scratch& scratch = of.operations.scratch();
  of.recorder.number(work);
  of.team.flight.carried_out(work.what.sequence, plan->algorithm->name.data());
  const std::int64_t from_ns = metrics.times(work.what) ? now_ns() : 0;
  scratch.reserve(plan->scratch, work.elements.bytes);
  work.memory.base[std::size_t(Buffer::scratch)] = scratch.lane(0);
  Replay replay;
  replay.begin(*plan->program, work.memory, work.elements, work.what.signature());
  Backoff backoff(of.team.world->oversubscribed);
  const Program::Outcome outcome = replay.advance(&backoff);
  metrics.waited(backoff);
  if (outcome != Program::Outcome::done) return go_on(of.owner, of.operations, std::move(work), replay, plan, from_ns);
  work.conclude(of.team.members);
  metrics.ended(work.what, from_ns, false);
  metrics.moved(plan->program->traffic);
  if (key && work.what.bytes < kTimedBytes) {
    assert(key->kind < repeats_.size());
    Repeat& r = repeats_[key->kind];
    r.key = *key;
    r.plan = plan;
    r.signature = work.what.signature();
    r.call = History::call_of(work.what);
    r.work = std::move(work);
  }
  return nullptr;
}

// It takes longer: it becomes an operation like any other.
Operation* ShortCalls::go_on(CommunicatorCore& owner, Operations& operations, Work&& work, const Replay& replay,
                             std::shared_ptr<PreparedPlan> plan, std::int64_t from_ns) {
  auto op = std::make_unique<Operation>(owner);
  op->plan = std::move(plan);
  op->work = std::move(work);
  op->replay = replay;
  op->replay.elements = &op->work.elements;
  op->timed_from_ns = from_ns;
  return operations.resume(std::move(op));
}

// ---- The communicator's side: locks, and the long way ----

bool CommunicatorCore::repeat(const Key& key, const void* input, void* output, Status* status) {
  std::unique_lock lock(lock_);
  Operation* op = nullptr;
  if (!short_calls_.repeat(parts(), key, input, output, &op)) return false;
  if (!op) return true;
  lock.unlock();
  return wait(op, -1, status);
}

bool CommunicatorCore::quick_transfer(const Descriptor& what, void* data) {
  if (!team_.fast || what.bytes > kShortBytesMax || what.root >= size() || what.root == rank()) return false;
  std::lock_guard lock(lock_);
  return ShortCalls::transfer(parts(), what, data);
}

Status CommunicatorCore::run(Work&& work, const Key* key) {
  std::unique_lock lock(lock_);
  std::shared_ptr<PreparedPlan> plan;
  Operation* op = nullptr;
  Status status;
  Failure& failure = operations_.failure();
  if (!failure.stopped() && operations_.collectives().empty() && !work.what.point_to_point() && !team_.world->check) {
    try {
      plan = operations_.plan_of(work);
      if (plan->program) op = short_calls_.run(parts(), std::move(work), plan, key);
    } catch (...) {
      if (failure.none() && work.what.sequence > 0) team_.flight.failed(work.what.sequence);
      operations_.break_down(in_context(team_.members, work.what, caught()), rank(), true);
      return failure.returned();
    }
  }
  lock.unlock();
  if (!plan || !plan->program) {
    work.blocking = true;
    status = start(std::move(work), &op, std::move(plan));
  } else if (!op) {
    completions::run();
  }
  if (op) wait(op, -1, &status);
  return status;
}

}  // namespace gccl
