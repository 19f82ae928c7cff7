#include "libgccl/communicator/communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <list>

#include "libgccl/base/no_destructor.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/completions.hpp"
#include "libgccl/select/reason.hpp"

namespace gccl {
namespace {

std::mutex registry_mutex;
std::list<Communicator*>& registry() {
  static NoDestructor<std::list<Communicator*>> list;
  return *list;
}

// The others wait for this rank's word on it no longer than the start may take. Later all have long been there: one
// that does not answer has no descriptors left, or is cut off, and who shrinks must hear that.
std::int64_t connect_timeout_ms(const World& world, const Members& members) {
  constexpr std::int64_t kLaterMs = 5000;
  const std::int64_t limit = world.start.start_timeout_ms / 4 * 3;
  return members.world ? limit : std::min(limit, kLaterMs);
}

}  // namespace

const char Communicator::kMagic[] = "gccl communicator";

bool progress_all_but(Communicator* mine) {
  bool moved = false;
  if (std::unique_lock lock(registry_mutex, std::try_to_lock); lock)
    for (Communicator* c : registry())
      if (c != mine && c->busy()) moved |= c->progress();
  return completions::run() || moved;
}

void for_each_communicator(const std::function<void(Communicator&)>& f) {
  if (std::unique_lock lock(registry_mutex, std::try_to_lock); lock)
    for (Communicator* c : registry()) f(*c);
}

void notice_failure_of(const Communicator* maybe) {
  Communicator* found = nullptr;
  {
    std::lock_guard lock(registry_mutex);
    for (Communicator* c : registry())
      if (c == maybe) found = c;
  }
  if (found) found->notice();
}

Status Communicator::create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                            std::unique_ptr<Communicator>* out) {
  assert(members.rank < members.size() && members.world_rank.size() == members.node.size());
  std::unique_ptr<Communicator> c(new Communicator);
  c->world_ = std::move(world);
  c->members_ = std::move(members);
  c->timeout_ms_ = c->world_->start.timeout_ms;
  if (c->members_.world && c->world_->shrinks) c->shrink_on_failure(true);
  const GCCL_Port_spec spec{.struct_bytes = sizeof spec,
                            .rank = c->rank(),
                            .size = c->size(),
                            .channels = kChannels,
                            .communicator = c->members_.id,
                            .node = c->members_.node.data(),
                            .world_rank = c->members_.world_rank.data(),
                            .connect_timeout_ms = connect_timeout_ms(*c->world_, c->members_)};
  // Before the ranks exchange anything: who has come out of it may ask one that has not.
  c->record_ = c->world_->watch->join(c->members_.id, c->rank(), c->members_.world_rank);
  // The first communicator brings the watch's ports along: each exchange of a start takes a rank's turn at the store.
  const GCCL_Port_spec specs[] = {spec, Watch::spec(spec)};
  std::unique_ptr<Ports> ports[2];
  const Status s = Ports::connect(*c->world_->wires, std::span(specs, c->members_.world ? 2 : 1), exchange,
                                  c->world_->start.start_timeout_ms, ports);
  if (!s.ok()) return s;
  c->ports_ = std::move(ports[0]);
  if (c->members_.world) c->world_->watch->use(std::move(ports[1]));
  c->fast_ = c->ports_->fast_path();
  c->plans_ = std::make_unique<Plans>(c->rank(), *c->ports_, c->world_->models(), c->world_->authorities);
  c->plans_->use(Layout::of(c->members_.node));
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
  shrink_on_failure(false);
  if (record_) world_->watch->leave(*record_);
  {
    std::lock_guard lock(lock_);
    const Operation* const dropped = first_pending();
    if (dropped && ports_ && failure_.none()) {
      // The others are told who did it, and where memory allows what he was doing.
      GCCL_Fault f{.result = GCCL_ERR_REMOTE, .peer = rank(), .text = "a rank freed the communicator"};
      try {
        std::snprintf(f.text, sizeof f.text, "%s freed the communicator while this operation was in flight: %s",
                      members_.name(rank()).c_str(), dropped->work.what.text().c_str());
      } catch (...) {
      }
      tell(f);
    }
    if (!left_ || !failure_.none()) world_->uneven = true;
    // Functions that are due find a communicator that takes nothing more.
    break_down(Status::error_or_code(dropped ? "the communicator was freed while operations were in flight"
                                             : "the communicator was freed",
                                     GCCL_ERR_INVALID_USAGE),
               rank(), false);
  }
  completions::settle(this);
  magic = nullptr;
}

bool Communicator::pending() {
  std::lock_guard lock(lock_);
  return !(queue_.empty() && transfers_.empty() && to_myself_.empty());
}

Status Communicator::begin_to_leave(Operation** out, const Others* others) {
  *out = nullptr;
  completions::run();
  {
    std::lock_guard lock(lock_);
    if (!failure_.none()) return failure_.unless_said();
  }
  if (pending()) return Status::error("operations are in flight: wait for them first", GCCL_ERR_INVALID_USAGE);
  // Nobody has all digests before everybody has come.
  auto op = std::make_unique<Operation>(*this);
  op->compare(Comparison::of_digests(members_, record_->history.digest(), record_->lengths_sum, others, world_->uneven),
              members_);
  return start(std::move(op), out);
}

// Rank 0 counts against all the others.
void Communicator::add_to(Others* others) {
  std::lock_guard lock(lock_);
  if (!failure_.none()) {
    others->failed = members_.id;
    others->code = std::uint64_t(failure_.why().code());
    return;
  }
  const std::uint64_t calls = splitmix::hash(members_.id ^ record_->history.digest());
  others->sum += rank() == 0 ? calls * (1 - std::uint64_t(size())) : calls;
  others->sum += record_->lengths_sum;
}

Status Communicator::leave() {
  Operation* op = nullptr;
  Status s = begin_to_leave(&op);
  if (op) wait(op, -1, &s);
  left_ = s.ok();
  return s;
}

Status Communicator::left() {
  std::lock_guard lock(lock_);
  if (failure_.none()) check_progress();
  if (const Status s = world_->watch->found(*record_); !s.ok()) break_down(s, rank(), true);
  for (const World::Failed& f : world_->failed)
    if (f.communicator == members_.id)
      break_down(Status::error(fmt::format("world rank {} had an error on a communicator of {} ranks that this rank "
                                           "had not heard of before GCCL_Finalize; its own call tells it",
                                           f.rank, size()),
                               f.code),
                 rank(), false);
  return failure_.unless_said();
}

Status Communicator::unsaid() {
  std::lock_guard lock(lock_);
  return failure_.unless_said();
}

void Communicator::metrics(GCCL_Metrics* out) {
  std::lock_guard lock(lock_);
  world_->recovery->suspicions(&metrics_);
  metrics_.read(out);
}

Plan Communicator::planned(const Call& call, std::uint32_t element_bytes) {
  std::lock_guard lock(lock_);
  return plans_->planned(call, element_bytes);
}

Communicator::Estimate Communicator::estimate(Collective kind, Count count, std::uint32_t element_bytes) {
  std::lock_guard lock(lock_);
  Estimate e{.plan = plans_->estimated(kind, count, element_bytes), .why = {}};
  e.why = reason_of(e.plan, plans_->authorities());
  return e;
}

void Communicator::use_layout(Layout layout) {
  std::lock_guard lock(lock_);
  assert(layout.ranks() == size() && active_.load(std::memory_order_relaxed) == 0);
  plans_->use(std::move(layout));
  repeats_ = {};
}

}  // namespace gccl
