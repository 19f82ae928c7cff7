// The short way of blocking calls: most of a program's calls end here.
#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

std::shared_ptr<PreparedPlan> Communicator::plan_of(const Work& work) {
  bool made = false;
  std::shared_ptr<PreparedPlan> plan = team_.plans->of(work, &made);
  if (made) {
    metrics_.planned(work.call.kind, *plan);
    announce(work, *plan);
  } else {
    metrics_.planned(true);
  }
  return plan;
}

bool Communicator::repeat(const Key& key, const void* input, void* output, Status* status) {
  Repeat& r = repeats_[key.kind];
  std::unique_lock lock(lock_);
  // What is in flight, broken or checked goes the long way, and so do functions that are due.
  if (!(r.key == key) || active_.load(std::memory_order_relaxed) != 0 || failure_.stopped() || completions::due())
    return false;
  Work& w = r.work;
  const std::uint32_t sequence = w.what.sequence = team_.record->history.last() + 1;
  const std::uint64_t signature = Descriptor::at_sequence(r.signature, sequence);
  team_.record->history.add(sequence, signature, r.call);
  team_.flight.began_short(sequence, r.plan->algorithm->name.data());
  const std::int64_t from_ns = metrics_.times(w.what) ? now_ns() : 0;
  Replay replay;
  const Buffers memory{
      {nullptr, static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output), scratch_.lane(0)}};
  replay.begin(*r.plan->program, memory, w.elements, signature);
  Backoff backoff(team_.world->oversubscribed);
  const Program::Outcome outcome = replay.advance(&backoff);
  metrics_.planned(true);
  metrics_.waited(backoff);
  if (outcome != Program::Outcome::done) {
    Work work;
    work.what = w.what;
    work.elements = w.elements;
    work.call = w.call;
    work.memory = memory;
    work.to_first_block = w.to_first_block;
    Operation* const op = continue_later(std::move(work), replay, r.plan, from_ns);
    lock.unlock();
    return wait(op, -1, status);
  }
  if (w.what.op == GCCL_AVG || w.to_first_block) {
    w.memory = memory;
    w.conclude(team_.members);
  }
  metrics_.ended(w.what, from_ns, false);
  metrics_.moved(r.plan->program->traffic);
  return true;
}

bool Communicator::quick_transfer(const Descriptor& what, void* data) {
  const bool sends = what.kind == kSendKind;
  const Rank peer = what.root;
  if (!team_.fast || what.bytes > kShortBytesMax || peer >= size() || peer == rank()) return false;
  std::lock_guard lock(lock_);
  if (active_.load(std::memory_order_relaxed) != 0 || failure_.stopped() || completions::due()) return false;
  const std::int64_t from_ns = metrics_.times(what) ? now_ns() : 0;
  const auto bytes = std::uint32_t(what.bytes);
  Backoff backoff(team_.world->oversubscribed);
  if (sends ? !team_.fast->send(peer, kPointToPointChannel, what.signature(), data, bytes)
            : !team_.fast->receive(peer, kPointToPointChannel, what.signature(), data, bytes, &backoff))
    return false;
  team_.record->messages.count(sends, peer);
  metrics_.moved(what);
  metrics_.ended(what, from_ns, false);
  return true;
}

// It takes longer: it becomes an operation like any other.
Operation* Communicator::continue_later(Work&& work, const Replay& replay, std::shared_ptr<PreparedPlan> plan,
                                        std::int64_t from_ns) {
  auto op = std::make_unique<Operation>(*this);
  op->plan = std::move(plan);
  op->work = std::move(work);
  op->replay = replay;
  op->replay.elements = &op->work.elements;
  op->started = op->replaying = true;
  op->timed_from_ns = from_ns;
  team_.flight.goes_on(op->work.what.sequence);
  op->started_ns = now_ns();
  queue_.push_back(op.get());
  active_.fetch_add(1, std::memory_order_relaxed);
  return op.release();
}

Status Communicator::run(Work&& work, const Key* key) {
  std::unique_lock lock(lock_);
  std::shared_ptr<PreparedPlan> plan;
  Operation* op = nullptr;
  Status status;
  if (!failure_.stopped() && queue_.empty() && !work.what.point_to_point() && !team_.world->check) {
    try {
      plan = plan_of(work);
      if (plan->program) op = run_program(std::move(work), plan, key);
    } catch (...) {
      break_down(in_context(work.what, caught()), rank(), true);
      return failure_.returned();
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
  team_.flight.carried_out(work.what.sequence, plan->algorithm->name.data());
  const std::int64_t from_ns = metrics_.times(work.what) ? now_ns() : 0;
  scratch_.reserve(plan->scratch, work.elements.bytes);
  work.memory.base[std::size_t(Buffer::scratch)] = scratch_.lane(0);
  Replay replay;
  replay.begin(*plan->program, work.memory, work.elements, work.what.signature());
  Backoff backoff(team_.world->oversubscribed);
  const Program::Outcome outcome = replay.advance(&backoff);
  metrics_.waited(backoff);
  if (outcome != Program::Outcome::done) return continue_later(std::move(work), replay, plan, from_ns);
  work.conclude(team_.members);
  metrics_.ended(work.what, from_ns, false);
  metrics_.moved(plan->program->traffic);
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

}  // namespace gccl
