#include "libgccl/communicator/communicator.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <list>

#include "libgccl/backends/shm/shm_backend.hpp"

namespace gccl {
namespace {

constexpr std::uint32_t kPointToPointChannel = kLanesMax;
constexpr std::uint32_t kChannels = kLanesMax + 1;
constexpr std::uint64_t kPointToPointCookie = ~std::uint64_t(0);
constexpr int kDoneAtOnce = 32;
constexpr std::int64_t kLookAroundNs = 1000000;
constexpr int kQuickLooks = 4000;  // some ten microseconds
constexpr std::size_t kTimedBytes = 64 * 1024;  // calls from here on are all timed; of smaller ones each sixteenth

std::mutex registry_mutex;
std::list<Communicator*>& registry() {
  static auto* const list = new std::list<Communicator*>;
  return *list;
}

}  // namespace

const char Communicator::kMagic[] = "gccl communicator";

bool progress_all_but(Communicator* mine) {
  std::unique_lock lock(registry_mutex, std::try_to_lock);
  bool moved = false;
  if (lock)
    for (Communicator* c : registry())
      if (c != mine && c->busy()) moved |= c->progress();
  return moved;
}

// ---- Making and ending ----

Status Communicator::create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                            std::unique_ptr<Communicator>* out) {
  std::unique_ptr<Communicator> c(new Communicator);
  c->world_ = std::move(world);
  c->members_ = std::move(members);
  c->layout_ = Layout::of(c->members_.node);
  c->timeout_ms_ = c->world_->start.timeout_ms;
  const GCCL_Port_spec spec{.struct_bytes = sizeof spec,
                            .rank = c->rank(),
                            .size = c->size(),
                            .channels = kChannels,
                            .communicator = c->members_.id,
                            .node = c->members_.node.data(),
                            .world_rank = c->members_.world_rank.data()};
  const Status s = Ports::connect(*c->world_->wires, spec, exchange, c->world_->start.start_timeout_ms, &c->ports_);
  if (!s.ok()) return s;
  c->setting_.view = c->layout_.view(c->rank());
  c->setting_.first = c->layout_.view(0);
  // Every rank knows this of every other one: a backend that serves all others of one rank and node serves them all.
  const Ports::Port* shm = c->ports_->of(shm_backend());
  if (shm && shm->peers == c->size() - 1) {
    c->shm_ = static_cast<shm::Port*>(shm->state);
    c->setting_.shared_memory = true;
  }
  c->scratch_.resize(kLanesMax);
  c->scratch_bytes_.resize(kLanesMax);
  std::lock_guard lock(registry_mutex);
  registry().push_back(c.get());
  *out = std::move(c);
  return {};
}

Communicator::~Communicator() {
  {
    std::lock_guard lock(registry_mutex);
    registry().remove(this);
  }
  const bool dropped = under_way();
  std::unique_lock lock(lock_);
  // Callbacks that are due find a communicator that takes nothing more.
  break_down(Status::error(dropped ? "the communicator was freed while operations were under way" : "the communicator was freed",
                           GCCL_ERR_INVALID_USAGE), rank(), dropped);
  run_callbacks(lock);
}

bool Communicator::under_way() {
  std::lock_guard lock(lock_);
  return !(queue_.empty() && transfers_.empty() && self_sends_.empty() && self_recvs_.empty());
}

Status Communicator::leave() {
  {
    std::unique_lock lock(lock_);
    run_callbacks(lock);
    if (!broken_.ok()) return {};
  }
  if (under_way()) return Status::error("operations are under way: wait for them first", GCCL_ERR_INVALID_USAGE);
  Work work;
  work.what.kind = std::uint8_t(Collective::barrier);
  work.call.kind = Collective::barrier;
  return run(std::move(work));
}

// ---- Plans ----

const Algorithm* Communicator::chosen(const Call& call, std::uint32_t element_bytes) {
  std::lock_guard lock(lock_);
  Plan plan;
  choose(call, element_bytes, setting_, world_->overrides, &plan);
  return plan.algorithm;
}

void Communicator::use_layout(Layout layout) {
  std::lock_guard lock(lock_);
  layout_ = std::move(layout);
  setting_.view = layout_.view(rank());
  setting_.first = layout_.view(0);
  plans_ = {};
  repeats_ = {};
}

std::shared_ptr<Plan> Communicator::plan_for(const Work& work) {
  const Call& call = work.call;
  const std::uint32_t element_bytes = work.elements.bytes;
  auto plan = std::make_shared<Plan>();
  if (work.algorithm) {
    plan->algorithm = work.algorithm;
    plan->shares = work.slicing.shares;
    plan->lanes = std::min({work.slicing.lanes, work.slicing.shares, kLanesMax});
    plan->window = work.slicing.window;
  } else {
    choose(call, element_bytes, setting_, world_->overrides, plan.get());
  }
  if (plan->shares == 1 && (shm_ || size() == 1)) {
    const Share whole{};
    const Count scratch = plan->algorithm->scratch_count(call, setting_.view, whole);
    plan->scratch.push_back(scratch);
    plan->program = Program::compile(plan->algorithm->make(call, setting_.view, whole), element_bytes, size(), shm_);
    return plan;
  }
  for (Count lane = 0; lane < plan->lanes; ++lane) {
    Count most = 0;
    // Shares differ by one element at most, and the first ones are the longer ones.
    most = plan->algorithm->scratch_count(call, setting_.view, Share{lane, plan->shares});
    plan->scratch.push_back(most);
  }
  return plan;
}

std::shared_ptr<Plan>& Communicator::plan_of(const Work& work) {
  const Shape shape{.kind = work.call.kind,
                    .in_place = work.call.in_place,
                    .root = work.call.root,
                    .element_bytes = work.elements.bytes,
                    .count = work.call.count,
                    .algorithm = work.algorithm,
                    .slicing = work.slicing};
  bool found = false;
  std::shared_ptr<Plan>& plan = plans_.place(shape, &found);
  if (found) {
    ++metrics_.plans_reused;
  } else {
    ++metrics_.plans_built;
    plan = plan_for(work);
  }
  return plan;
}

// ---- Blocking calls: the short way ----

bool Communicator::quick(const Key& key, const void* input, void* output, bool* started) {
  *started = false;
  Repeat& r = repeats_[key.kind];
  lock_.lock();
  // What is under way, broken or checked goes the long way.
  if (!(r.key == key) || active_.load(std::memory_order_relaxed) != 0) {
    lock_.unlock();
    return false;
  }
  Work& w = r.work;
  w.what.sequence = ++sequence_;
  GCCL_Call_metrics& m = metrics_.calls[key.kind];
  const std::int64_t from_ns = m.calls % 16 == 0 ? now_ns() : 0;
  Replay replay;
  const Memory memory{{nullptr, static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output), scratch_[0].get()}};
  replay.begin(*r.plan->program, shm_, memory, w.elements, Descriptor::at_sequence(r.signature, sequence_));
  for (int looks = 0;; ++looks) {
    const Replay::Outcome outcome = replay.advance();
    if (outcome == Replay::Outcome::done) {
      if (w.what.op == GCCL_AVG || w.to_first_block) {
        w.memory = memory;
        conclude(w);
      }
      ++metrics_.plans_reused;
      if (from_ns) {
        count(w, from_ns, false);
      } else {
        ++m.calls;
        m.bytes += w.what.bytes;
      }
      count(r.plan->program->traffic);
      lock_.unlock();
      return true;
    }
    if (outcome != Replay::Outcome::blocked || looks == kQuickLooks || world_->crowded) break;
  }
  *started = true;
  w.memory = memory;
  interrupted_ = replay;
  interrupted_from_ns_ = from_ns;
  return false;  // the lock stays: finish_quick() has it
}

Status Communicator::finish_quick(const Key& key) {
  std::unique_lock lock(lock_, std::adopt_lock);
  Repeat& r = repeats_[key.kind];
  Work work;
  work.what = r.work.what;
  work.elements = r.work.elements;
  work.call = r.work.call;
  work.memory = r.work.memory;
  work.to_first_block = r.work.to_first_block;
  return run_on(std::move(work), interrupted_, r.plan, interrupted_from_ns_, lock);
}

// It takes longer: it becomes an operation like any other.
Status Communicator::run_on(Work&& work, const Replay& replay, std::shared_ptr<Plan> plan, std::int64_t from_ns, std::unique_lock<SpinLock>& lock) {
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
  std::unique_lock lock(lock_);
  if (broken_.ok() && queue_.empty() && !work.what.point_to_point() && !work.lengths && !world_->check) {
    const std::shared_ptr<Plan> plan = plan_of(work);
    if (plan->program) {
      work.what.sequence = ++sequence_;
      const GCCL_Call_metrics& m = metrics_.calls[work.what.kind];
      const bool timed = m.calls % 16 == 0 || work.what.bytes >= kTimedBytes;
      const std::int64_t from_ns = timed ? now_ns() : 0;
      Replay replay;
      if (!run_replay(work, *plan, &replay)) return run_on(std::move(work), replay, plan, from_ns, lock);
      conclude(work);
      count(work, from_ns, false);
      count(plan->program->traffic);
      if (key && work.what.bytes < kTimedBytes) {
        Repeat& r = repeats_[key->kind];
        r.key = *key;
        r.plan = plan;
        r.signature = work.what.signature();
        r.work = std::move(work);
      }
      run_callbacks(lock);
      return {};
    }
  }
  lock.unlock();
  Operation* op = nullptr;
  Status s = start(std::move(work), &op);
  if (s.ok()) wait(op, -1, &s);
  return s;
}

// Spins for a few microseconds, with the lock held.
bool Communicator::run_replay(Work& work, Plan& plan, Replay* replay) {
  grow_scratch(plan, work.elements.bytes);
  work.memory.base[std::size_t(Buffer::scratch)] = scratch_[0].get();
  replay->begin(*plan.program, shm_, work.memory, work.elements, work.what.signature());
  Patience patience(world_->crowded);
  for (;;) {
    const Replay::Outcome outcome = replay->advance();
    const bool done = outcome == Replay::Outcome::done;
    if (!done && outcome == Replay::Outcome::blocked && !patience.pause() && !abort_asked_.load(std::memory_order_relaxed)) continue;
    metrics_.waits_yielded += patience.yields();
    return done;
  }
}

void Communicator::grow_scratch(const Plan& plan, std::uint32_t element_bytes) {
  for (std::size_t lane = 0; lane < plan.scratch.size(); ++lane) {
    const std::size_t bytes = plan.scratch[lane] * element_bytes;
    if (scratch_bytes_[lane] >= bytes) continue;
    repeats_ = {};             // they hold the old address
    scratch_[lane].reset();    // first, so that old and new never exist at once
    scratch_[lane] = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_[lane] = bytes;
  }
}

// ---- Starting and waiting ----

Status Communicator::start(Work&& work, Operation** out) {
  auto op = std::make_unique<Operation>(*this);
  op->work = std::move(work);
  std::unique_lock lock(lock_);
  if (!broken_.ok()) return broken_;
  GCCL_Call_metrics& m = metrics_.calls[op->work.what.kind];
  op->started_ns = now_ns();
  if (m.calls % 16 == 0 || op->work.what.bytes >= kTimedBytes) op->timed_from_ns = op->started_ns;
  *out = op.release();
  enqueue(*out);
  return {};
}

void Communicator::enqueue(Operation* op) {
  active_.fetch_add(1, std::memory_order_relaxed);
  if (op->work.what.point_to_point()) return begin_transfer(op);
  op->work.what.sequence = ++sequence_;
  if (world_->check && size() > 1) {
    // The descriptions of all ranks' calls are gathered first.
    auto* const check = new Operation(*this);
    check->checks_next = check->given_up = true;
    struct Said {
      std::uint64_t signature, count, root, checksum;
    };
    const Said said{op->work.what.signature(), op->work.what.count, op->work.what.root, std::uint64_t(op->work.what.dtype) << 32 | std::uint32_t(op->work.what.op)};
    check->check_mine.resize(sizeof said);
    std::memcpy(check->check_mine.data(), &said, sizeof said);
    check->check_all.resize(sizeof said * size());
    Work& w = check->work;
    w.what = {.kind = std::uint8_t(Collective::allgather), .dtype = GCCL_UINT8, .count = sizeof said, .sequence = op->work.what.sequence};
    w.call = {.kind = Collective::allgather, .count = sizeof said};
    w.memory.base[std::size_t(Buffer::input)] = check->check_mine.data();
    w.memory.base[std::size_t(Buffer::output)] = check->check_all.data();
    check->started_ns = op->started_ns;
    active_.fetch_add(1, std::memory_order_relaxed);
    queue_.push_back(check);
  }
  queue_.push_back(op);
  advance_front();
}

void Communicator::begin(Operation* op) {
  op->started = true;
  Work& w = op->work;
  if (w.lengths) {
    op->plan = plan_for(w);
    ++metrics_.plans_built;
  } else {
    op->plan = plan_of(w);
  }
  grow_scratch(*op->plan, w.elements.bytes);
  if (op->plan->program) {
    w.memory.base[std::size_t(Buffer::scratch)] = scratch_[0].get();
    op->replaying = true;
    op->replay.begin(*op->plan->program, shm_, w.memory, w.elements, w.what.signature());
    return;
  }
  std::vector<std::byte*> scratch;
  for (auto& s : scratch_) scratch.push_back(s.get());
  op->flow.emplace(*ports_, Flow::Work{.signature = w.what.signature(), .memory = w.memory, .scratch = std::move(scratch), .elements = &w.elements});
  for (Count lane = 0; lane < op->plan->lanes; ++lane)
    op->flow->add(sliced(op->plan->algorithm, w.call, setting_.view, op->plan->shares, lane, op->plan->lanes), op->plan->window);
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
        return break_down(named(op->work, Status::error("rank " + std::to_string(s.peer) + " calls " + text_of_signature(op->replay.signature_found()),
                                                        GCCL_ERR_MISMATCH)), s.peer, true);
      }
      if (outcome == Replay::Outcome::no_room)
        return break_down(named(op->work, Status::error("/dev/shm is full: free it, or mount it larger (docker run --shm-size)", GCCL_ERR_SYSTEM)), rank(), true);
    } else {
      if (!op->flow->settle()) return break_down(named(op->work, op->flow->status()), rank(), true);
      if (!op->flow->done()) return;
    }
    queue_.pop_front();
    finish(op, {});
  }
}

// The end of the work itself.
void Communicator::conclude(Work& w) {
  std::byte* const out = w.memory.base[std::size_t(Buffer::output)];
  const Region result = reduces(w.call.kind) || w.call.kind == Collective::reduce_scatterv ? output_of(w.call, size(), rank()) : Region{};
  if (w.what.op == GCCL_AVG && result.count > 0) divide(w.elements.dtype, out + result.offset * w.elements.bytes, result.count, size());
  if (w.to_first_block) std::memmove(out, out + result.offset * w.elements.bytes, result.count * w.elements.bytes);
}

void Communicator::count(const Work& w, std::int64_t from_ns, bool failed) {
  GCCL_Call_metrics& m = metrics_.calls[w.what.kind];
  ++m.calls;
  m.failed += failed;
  m.bytes += w.what.bytes;
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
  if (op->checks_next) {
    if (status.ok()) compare_checks(op);
  } else {
    if (status.ok()) conclude(op->work);
    count(op->work, op->timed_from_ns, !status.ok());
  }
  op->flow.reset();
  op->plan.reset();
  op->status = std::move(status);
  for (const auto& c : op->callbacks) callbacks_.push_back({c, GCCL_Result(op->status.code())});
  active_.fetch_add(std::uint32_t(op->callbacks.size()), std::memory_order_relaxed);
  op->callbacks.clear();
  active_.fetch_sub(1, std::memory_order_relaxed);
  if (op->given_up) {
    delete op;
  } else {
    op->done.store(true, std::memory_order_release);
  }
}

void Communicator::compare_checks(Operation* op) {
  const std::size_t each = op->check_mine.size();
  for (Rank r = 1; r < size(); ++r) {
    if (std::memcmp(op->check_all.data(), op->check_all.data() + r * each, each) == 0) continue;
    std::uint64_t first[4], other[4];
    std::memcpy(first, op->check_all.data(), sizeof first);
    std::memcpy(other, op->check_all.data() + r * each, sizeof other);
    std::string text = "rank " + std::to_string(r) + " calls " + text_of_signature(other[0]) + ", rank 0 calls " + text_of_signature(first[0]);
    if (first[0] == other[0])
      text += ": count " + std::to_string(other[1]) + " against " + std::to_string(first[1]) + ", root " + std::to_string(other[2]) + " against " + std::to_string(first[2]);
    // Every rank finds the same by itself.
    return break_down(Status::error(text, GCCL_ERR_MISMATCH), r, false);
  }
}

// ---- Point to point ----

void Communicator::begin_transfer(Operation* op) {
  op->started = true;
  Work& w = op->work;
  if (w.what.root == rank()) {
    meet_myself(op);
    return;
  }
  const bool sends = w.what.kind == kSendKind;
  GCCL_Transfer& t = op->transfer;
  t.peer = w.what.root;
  t.channel = kPointToPointChannel;
  t.data = w.memory.base[std::size_t(sends ? Buffer::input : Buffer::output)];
  t.bytes = w.what.bytes;
  t.signature = w.what.signature();
  t.grain = w.elements.bytes;
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
    const std::string theirs = t.result == GCCL_ERR_MISMATCH ? "it sends " + std::to_string(t.bytes_found) + " bytes (" + text_of_signature(t.signature_found) + ")" : "the transfer failed";
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
  if (from.what.bytes) std::memcpy(to.memory.base[std::size_t(Buffer::output)], from.memory.base[std::size_t(Buffer::input)], from.what.bytes);
  finish(other, {});
  finish(op, {});
  return true;
}

// ---- Progress ----

bool Communicator::move() {
  if (!broken_.ok()) return false;
  if (abort_asked_.load(std::memory_order_relaxed)) {
    break_down(Status::error("GCCL_Abort was called on rank " + std::to_string(rank()) + " with code " + std::to_string(abort_code_.load()), GCCL_ERR_ABORTED), rank(), true);
    return true;
  }
  bool moved = false;
  for (Ports::Port& port : ports_->all()) {
    if (port.under_way == 0) continue;
    GCCL_Transfer* done[kDoneAtOnce];
    const int n = port.backend->poll(port.state, done, kDoneAtOnce);
    if (n < 0) {
      GCCL_Fault f{};
      port.backend->fault(port.state, &f);
      break_down(reason(f), f.peer, true);
      return true;
    }
    port.under_way -= std::uint32_t(n);
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
          break_down(named(queue_.front()->work, queue_.front()->flow->status()), done[i]->peer, true);
        continue;
      }
      auto* const op = static_cast<Operation*>(done[i]->owner);
      if (done[i]->result != GCCL_SUCCESS) {
        break_down(named(op->work, Status::error("it sends " + std::to_string(done[i]->bytes_found) + " bytes (" + text_of_signature(done[i]->signature_found) + ")", done[i]->result)),
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

// Nothing has moved for a while: has a peer gone, or the time?
void Communicator::look_around() {
  if (!broken_.ok()) return;
  if (shm_ && !queue_.empty() && queue_.front()->replaying)
    if (!shm_->healthy(queue_.front()->replay.step().end)) return break_down(reason(shm_->fault()), shm_->fault().peer, true);
  // What peers say on ports where nothing is due.
  for (Ports::Port& port : ports_->all()) {
    if (port.under_way > 0 || !port.state || port.backend->poll(port.state, nullptr, 0) >= 0) continue;
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

bool Communicator::timed_out(const Operation& op, std::int64_t now) {
  const std::int64_t limit = timeout_ms_.load(std::memory_order_relaxed);
  if (limit < 0 || now - op.started_ns < limit * 1000000) return false;
  Rank peer = rank();
  std::string what = "a message";
  if (op.work.what.point_to_point()) {
    peer = op.work.what.root;
    what = op.work.what.kind == kSendKind ? "it to take the message" : "its message";
  } else if (op.replaying) {
    peer = op.replay.step().peer;
    what = "its message of " + std::to_string(op.replay.step().bytes) + " bytes (step " + std::to_string(op.replay.place() + 1) + " of " + std::to_string(op.plan->program->steps.size()) + ")";
  } else if (op.flow) {
    op.flow->awaited(&peer, &what);
  }
  break_down(named(op.work, Status::error("not complete after " + std::to_string(limit) + " ms; waiting for rank " + std::to_string(peer) + ", " + what +
                                              ". Check that rank " + std::to_string(peer) + " is alive and makes the same call; GCCL_CHECK=1 compares all ranks' calls",
                                          GCCL_ERR_TIMEOUT)), peer, true);
  return true;
}

Status Communicator::named(const Work& work, const Status& why) const {
  return Status::error("rank " + std::to_string(rank()) + " of " + std::to_string(size()) + ", " + work.what.text() + ": " + why.text(), why.code());
}

// What a port's fault means for the call that waits; heard from others it is passed on as it is.
Status Communicator::reason(const GCCL_Fault& f) const {
  if (f.result != GCCL_ERR_PEER_LOST) return Status::error(f.text, f.result);
  const std::string text = std::strncmp(f.text, "rank ", 5) == 0 ? f.text : "lost rank " + std::to_string(f.peer) + ": " + f.text;
  const Operation* const op = !queue_.empty() ? queue_.front() : !transfers_.empty() ? transfers_.front() : nullptr;
  return op && text.starts_with("lost") ? named(op->work, Status::error(text, f.result)) : Status::error(text, f.result);
}

// Ends everything under way. The first reason stays.
void Communicator::break_down(const Status& why, Rank culprit, bool tell_others) {
  if (!broken_.ok()) return;
  broken_ = why;
  repeats_ = {};
  if (tell_others && ports_) {
    GCCL_Fault f{.result = why.code(), .peer = culprit, .text = {}};
    std::snprintf(f.text, sizeof f.text, "%s", why.text().c_str());
    for (Ports::Port& port : ports_->all())
      if (port.state) port.backend->abort(port.state, &f);
  }
  std::vector<Operation*> all(queue_.begin(), queue_.end());
  all.insert(all.end(), transfers_.begin(), transfers_.end());
  all.insert(all.end(), self_sends_.begin(), self_sends_.end());
  all.insert(all.end(), self_recvs_.begin(), self_recvs_.end());
  queue_.clear();
  transfers_.clear();
  self_sends_.clear();
  self_recvs_.clear();
  for (Operation* op : all) {
    if (op->transferring) {
      Ports::Port& port = ports_->to(op->transfer.peer);
      port.backend->cancel(port.state, &op->transfer);
      --port.under_way;
      op->transferring = false;
    }
    finish(op, broken_);
  }
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
  run_callbacks(lock);
  return moved;
}

void Communicator::run_callbacks(std::unique_lock<SpinLock>& lock) {
  if (callbacks_.empty()) return;
  const auto due = std::move(callbacks_);
  callbacks_.clear();
  active_.fetch_sub(std::uint32_t(due.size()), std::memory_order_relaxed);
  lock.unlock();
  for (const auto& [callback, result] : due) callback.first(result, callback.second);
  lock.lock();
}

bool Communicator::wait(Operation* op, std::int64_t timeout_ms, Status* status) {
  // A request may outlive its communicator: what is done is done.
  if (op->done.load(std::memory_order_acquire)) {
    *status = op->status;
    delete op;
    return true;
  }
  Patience patience(world_->crowded);
  const std::int64_t until = timeout_ms < 0 ? 0 : now_ns() + timeout_ms * 1000000;
  while (!op->done.load(std::memory_order_acquire)) {
    bool moved = false;
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      moved = move();
      run_callbacks(lock);
    }
    if (op->done.load(std::memory_order_acquire)) break;
    if (moved) {
      patience.reset();
      continue;
    }
    if (!patience.pause()) continue;
    if (std::unique_lock lock(lock_, std::try_to_lock); lock) {
      look_around();
      run_callbacks(lock);
    }
    progress_all_but(this);
    if (timeout_ms >= 0 && now_ns() >= until && !op->done.load(std::memory_order_acquire)) return false;
  }
  if (patience.yields() > 0) {
    std::lock_guard lock(lock_);
    metrics_.waits_yielded += patience.yields();
  }
  *status = op->status;
  delete op;
  return true;
}

bool Communicator::test(Operation* op, Status* status) {
  if (!op->done.load(std::memory_order_acquire)) {
    progress();
    if (!op->done.load(std::memory_order_acquire)) {
      progress_all_but(this);
      return false;
    }
  }
  *status = op->status;
  delete op;
  return true;
}

void Communicator::give_up(Operation* op) {
  if (!op->done.load(std::memory_order_acquire)) {
    std::lock_guard lock(lock_);
    if (!op->done.load(std::memory_order_acquire)) {
      op->given_up = true;
      return;
    }
  }
  delete op;
}

void Communicator::on_complete(Operation* op, GCCL_Completion_function function, void* context) {
  std::lock_guard lock(lock_);
  if (op->done.load(std::memory_order_acquire)) {
    callbacks_.push_back({{function, context}, GCCL_Result(op->status.code())});
    active_.fetch_add(1, std::memory_order_relaxed);
  } else {
    op->callbacks.push_back({function, context});
  }
}

void Communicator::abort(int code) {
  abort_code_ = code;
  abort_asked_ = true;
  // The others are told at once; whoever waits here finds out in its next look.
  GCCL_Fault f{.result = GCCL_ERR_ABORTED, .peer = rank(), .text = {}};
  std::snprintf(f.text, sizeof f.text, "GCCL_Abort was called on rank %u with code %d", unsigned(rank()), code);
  for (Ports::Port& port : ports_->all())
    if (port.state) port.backend->abort(port.state, &f);
  if (std::unique_lock lock(lock_, std::try_to_lock); lock) move();
}

void Communicator::metrics(GCCL_Metrics* out) {
  std::lock_guard lock(lock_);
  const std::size_t bytes = std::min(out->struct_bytes, sizeof metrics_);
  std::memcpy(out, &metrics_, bytes);
  out->struct_bytes = bytes;
  for (std::size_t k = 0; k < GCCL_METRICS_KINDS; ++k) {
    const bool known = k < collective_names().size() || k >= kSendKind;
    out->calls[k].name = known ? kind_name(std::uint8_t(k)).data() : nullptr;
  }
}

// ---- Offspring ----

class Communicator::OverParent : public Exchange {
 public:
  explicit OverParent(Communicator& parent) : parent_(parent) {}
  // Gathers among all ranks of the parent, and hands on those of `ranks`.
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t) override {
    std::vector<std::byte> everybody(mine.size() * parent_.size());
    Work w;
    w.what = {.kind = std::uint8_t(Collective::allgather), .dtype = GCCL_UINT8, .count = mine.size(), .bytes = everybody.size()};
    w.call = {.kind = Collective::allgather, .count = mine.size()};
    w.memory.base[std::size_t(Buffer::input)] = const_cast<std::byte*>(mine.data());
    w.memory.base[std::size_t(Buffer::output)] = everybody.data();
    Status s = parent_.run(std::move(w));
    if (!s.ok()) return s;
    if (ranks.empty()) {
      *all = std::move(everybody);
      return {};
    }
    all->clear();
    for (const Rank r : ranks) all->insert(all->end(), everybody.begin() + std::ptrdiff_t(r * mine.size()), everybody.begin() + std::ptrdiff_t((r + 1) * mine.size()));
    return {};
  }
  std::vector<Rank> ranks;

 private:
  Communicator& parent_;
};

Status Communicator::split(int color, int key, std::unique_ptr<Communicator>* out) {
  struct Choice {
    std::int32_t color, key;
  };
  const Choice mine{color < 0 ? -1 : color, key};
  OverParent exchange(*this);
  std::vector<std::byte> all;
  Status s = exchange.all_gather({reinterpret_cast<const std::byte*>(&mine), sizeof mine}, &all, -1);
  if (!s.ok()) return s;
  std::vector<Choice> choices(size());
  std::memcpy(choices.data(), all.data(), all.size());

  std::vector<Rank> ranks;
  for (Rank r = 0; r < size(); ++r)
    if (choices[r].color == mine.color) ranks.push_back(r);
  std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) { return choices[a].key < choices[b].key; });
  Members m;
  m.id = (members_.id + 0x9e3779b97f4a7c15 * ++splits_) ^ (std::uint64_t(std::uint32_t(mine.color)) + 1) * 0xbf58476d1ce4e5b9;
  std::vector<Rank> numbers;  // new node numbers, by the order in which nodes appear
  for (const Rank r : ranks) {
    if (r == rank()) m.rank = Rank(m.world_rank.size());
    m.world_rank.push_back(members_.world_rank[r]);
    auto it = std::find(numbers.begin(), numbers.end(), members_.node[r]);
    if (it == numbers.end()) it = numbers.insert(numbers.end(), members_.node[r]);
    m.node.push_back(Rank(it - numbers.begin()));
  }
  if (mine.color < 0) {
    // Takes part in the parent's exchanges, with nothing to say.
    const std::size_t each = world_->wires->instances().size() * GCCL_BACKEND_ADDRESS_BYTES;
    for (const std::size_t bytes : {each, Ports::report_bytes(), Ports::report_bytes()})
      if (s = exchange.all_gather(std::vector<std::byte>(bytes), &all, -1); !s.ok()) return s;
    out->reset();
    return {};
  }
  exchange.ranks = ranks;
  return create(world_, std::move(m), exchange, out);
}

Status Communicator::create(std::span<const int> ranks, std::unique_ptr<Communicator>* out) {
  int key = -1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || Rank(ranks[i]) >= size())
      return Status::error("ranks[" + std::to_string(i) + "] is " + std::to_string(ranks[i]) + ": expected 0 to " + std::to_string(size() - 1), GCCL_ERR_INVALID_ARGUMENT);
    for (std::size_t j = 0; j < i; ++j)
      if (ranks[j] == ranks[i]) return Status::error("ranks[" + std::to_string(i) + "] repeats rank " + std::to_string(ranks[i]), GCCL_ERR_INVALID_ARGUMENT);
    if (Rank(ranks[i]) == rank()) key = int(i);
  }
  return split(key < 0 ? -1 : 0, key, out);
}

}  // namespace gccl
