#include "libgccl/communicator/communicator_core.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <list>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/no_destructor.hpp"
#include "libgccl/communicator/breaking.hpp"
#include "libgccl/communicator/completions.hpp"
#include "libgccl/communicator/record/flight_dump.hpp"
#include "libgccl/select/reason.hpp"

namespace gccl {
namespace {

std::mutex registry_mutex;
std::list<CommunicatorCore*>& registry() {
  static NoDestructor<std::list<CommunicatorCore*>> list;
  return *list;
}

std::atomic<int> mending{0};  // of those, whose links may have something to do while nothing is in flight

// This thread goes through the registry. What it finds may make it do so once more: a failure, of which it writes a
// dump.
thread_local bool in_registry = false;
struct InRegistry {
  InRegistry() { in_registry = true; }
  ~InRegistry() { in_registry = false; }
  InRegistry(const InRegistry&) = delete;
};

// Threads that poll keep what they look at for microseconds.
template <class Lock>
bool locks_until(Lock& lock, std::int64_t until_ns) {
  while (!lock.try_lock()) {
    if (now_ns() >= until_ns) return false;
    ::sched_yield();
  }
  return true;
}

// The others wait for this rank's word on it no longer than the start may take. Later all have long been there: one
// that does not answer has no descriptors left, or is cut off, and a rank that shrinks must hear that.
std::int64_t connect_timeout_ms(const World& world, const Members& members) {
  constexpr std::int64_t kLaterMs = 5000;
  const std::int64_t limit = world.bootstrap.start_timeout_ms / 4 * 3;
  return members.world ? limit : std::min(limit, kLaterMs);
}

}  // namespace

const char CommunicatorCore::kMagic[] = "gccl communicator";

Progress progress_all_but(CommunicatorCore* mine) {
  Progress made = Progress::nothing;
  // A program may have a thousand, and to look at each takes longer than most calls.
  const bool others = InFlight::busy_communicators() > std::uint32_t(mine && mine->busy()) || mending > 0;
  if (std::unique_lock lock(registry_mutex, std::defer_lock); others && !in_registry && lock.try_lock()) {
    const InRegistry in;
    for (CommunicatorCore* c : registry())
      if (c != mine && (c->busy() || c->world().mends)) made = std::max(made, c->progress());
  }
  return completions::run() ? Progress::something : made;
}

bool for_each_communicator(const std::function<void(CommunicatorCore&)>& f, std::int64_t until_ns) {
  std::unique_lock lock(registry_mutex, std::defer_lock);
  if (!in_registry && !locks_until(lock, until_ns)) return false;
  for (CommunicatorCore* c : registry()) f(*c);
  return true;
}

void notice_failure_of(const CommunicatorCore* maybe) {
  std::optional<Inside> found;
  {
    std::lock_guard lock(registry_mutex);
    for (CommunicatorCore* c : registry())
      if (c == maybe) found.emplace(*c);
  }
  if (found) (*found)->survival().notice();
}

Status CommunicatorCore::create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                                std::unique_ptr<CommunicatorCore>* out) {
  assert(members.sound());
  std::unique_ptr<CommunicatorCore> c(new CommunicatorCore);
  c->team_.world = std::move(world);
  c->team_.members = std::move(members);
  c->set_timeout(c->team_.world->bootstrap.timeout_ms);
  if (c->team_.members.world) c->survival_.recover_by(c->team_.world->policy);
  const GCCL_Port_spec spec{.struct_bytes = sizeof spec,
                            .rank = c->rank(),
                            .size = c->size(),
                            .channels = kChannels,
                            .communicator = c->team_.members.id,
                            .node = c->team_.members.node.data(),
                            .world_rank = c->team_.members.world_rank.data(),
                            .connect_timeout_ms = connect_timeout_ms(*c->team_.world, c->team_.members)};
  // Before the ranks exchange anything: a rank that has come out of it may ask one that has not.
  c->team_.record = c->team_.world->watch->join(c->team_.members.id, c->rank(), c->team_.members.world_rank);
  // The first communicator brings the watch's ports along: each exchange of a start takes a rank's turn at the store.
  const GCCL_Port_spec specs[] = {spec, Watch::spec(spec)};
  std::unique_ptr<Ports> ports[2];
  const Status s = Ports::connect(*c->team_.world->transports, std::span(specs, c->team_.members.world ? 2 : 1),
                                  exchange, c->team_.world->bootstrap.start_timeout_ms, ports);
  if (!s.ok()) return s;
  c->team_.ports = std::move(ports[0]);
  if (c->team_.members.world) c->team_.world->watch->use(std::move(ports[1]));
  c->team_.fast = c->team_.ports->fast_path();
  c->team_.plans =
      std::make_unique<Plans>(c->rank(), *c->team_.ports, c->team_.world->models(), c->team_.world->authorities);
  c->team_.plans->use(Layout::of(c->team_.members.node));
  // In memory nobody counts, and the same calls are too short for that.
  if (c->team_.world->link_slow > 0 && c->size() > 1 && !c->team_.ports->in_memory())
    c->team_.links = std::make_unique<LinkWatch>(c->team_.members, c->team_.world->link_slow,
                                                 c->team_.plans->link_rate(), c->team_.world->link_avoid);
  std::lock_guard lock(registry_mutex);
  registry().push_back(c.get());
  if (c->team_.world->mends) ++mending;
  *out = std::move(c);
  return {};
}

// Functions that are due find a communicator that takes nothing more.
void CommunicatorCore::close() {
  if (std::exchange(closed_, true)) return;
  {
    std::lock_guard lock(registry_mutex);
    if (registry().remove(this) > 0 && team_.world->mends) --mending;
  }
  std::lock_guard lock(lock_);
  const Operation* const dropped = operations_.first();
  if (dropped && team_.ports && operations_.failure().none()) {
    // The others hear which rank did it, and where memory allows what it was doing.
    GCCL_Fault f{.result = GCCL_ERR_REMOTE, .peer = rank(), .text = "a rank freed the communicator"};
    try {
      std::snprintf(f.text, sizeof f.text, "%s freed the communicator while this operation was in flight: %s",
                    team_.members.name(rank()).c_str(), dropped->work.what.text().c_str());
    } catch (...) {
    }
    abort_ports(*team_.ports, f);
  }
  const Failure& failure = operations_.failure();
  if (!leaving_.done() || !failure.none()) team_.world->uneven = true;
  if (!failure.none()) team_.world->failed_before.add({team_.members.id, std::uint64_t(failure.why().code())});
  operations_.close(Status::error_or_code(
      dropped ? "the communicator was freed while operations were in flight" : "the communicator was freed",
      GCCL_ERR_INVALID_USAGE));
}

void CommunicatorCore::close(std::span<const std::unique_ptr<CommunicatorCore>> all) {
  for (const auto& c : all) c->close();
  for (const auto& c : all) c->await_all();  // a function of GCCL_On_failure in one of them may use any
  for (const auto& c : all) completions::settle(c.get());
}

CommunicatorCore::~CommunicatorCore() {
  close();
  await_all();
  survival_.recover_by(GCCL_FAIL);
  if (team_.record) team_.world->watch->leave(*team_.record);
  completions::settle(this);
  magic = nullptr;
}

Status CommunicatorCore::await_others() {
  const std::int64_t until_ns = now_ns() + kLeaveNs;
  for (Backoff backoff(true); entered(); backoff.pause())
    if (holds_thread() || goes_on() || now_ns() >= until_ns) return thread_inside();
  return {};
}

Status CommunicatorCore::thread_inside() {
  return Status::error("another thread waits in a call on a communicator: end that first (GCCL_Abort does)",
                       GCCL_ERR_INVALID_USAGE);
}

bool CommunicatorCore::pending() {
  std::lock_guard lock(lock_);
  return operations_.busy();
}

std::uint64_t CommunicatorCore::id() {
  std::lock_guard lock(lock_);
  return team_.members.id;
}

bool CommunicatorCore::holds_thread() {
  std::lock_guard lock(lock_);
  return supervisor_.awaited() && !operations_.failure().abort_asked();
}

bool CommunicatorCore::goes_on() {
  std::lock_guard lock(lock_);
  const Failure& failure = operations_.failure();
  return operations_.busy() && failure.none() && !failure.abort_asked();
}

void CommunicatorCore::count_links() {
  team_.world->recovery->suspicions(&recorder_.metrics());
  recorder_.metrics().reconnected(team_.ports->link_counts());
}

void CommunicatorCore::metrics(GCCL_Metrics* out) {
  std::lock_guard lock(lock_);
  count_links();
  recorder_.metrics().read(out);
}

Plan CommunicatorCore::planned(const Call& call, std::uint32_t element_bytes) {
  std::lock_guard lock(lock_);
  return team_.plans->planned(call, element_bytes);
}

CommunicatorCore::Estimate CommunicatorCore::estimate(Collective kind, Count count, std::uint32_t element_bytes) {
  std::lock_guard lock(lock_);
  Estimate e{.plan = team_.plans->estimated(kind, count, element_bytes), .why = {}};
  e.why = reason_of(e.plan, team_.plans->authorities());
  return e;
}

void CommunicatorCore::use_layout(Layout layout) {
  std::lock_guard lock(lock_);
  assert(layout.ranks() == size() && !busy());
  team_.plans->use(std::move(layout));
  short_calls_.forget();
}

void CommunicatorCore::forget_short_calls() {
  std::lock_guard lock(lock_);
  short_calls_.forget();
}

Status CommunicatorCore::start(Work&& work, Operation** out, std::shared_ptr<PreparedPlan> plan) {
  *out = nullptr;
  auto op = std::make_unique<Operation>(*this);
  op->work = std::move(work);
  op->plan = std::move(plan);
  std::lock_guard lock(lock_);
  return operations_.start(std::move(op), out);
}

void CommunicatorCore::fail(Status why) noexcept {
  std::lock_guard lock(lock_);
  Failure& failure = operations_.failure();
  const bool same = failure.none() || failure.why().code() == why.code();
  operations_.break_down(std::move(why), rank(), true);
  if (same) failure.acknowledge();  // the caller returns this one
}

void CommunicatorCore::abort(int code) noexcept {
  operations_.failure().ask_abort(code);
  {  // The other ranks get it at once; a thread that waits here finds out at its next poll.
    std::lock_guard lock(abort_mutex_);
    abort_ports(*team_.ports, Failure::abort_by(team_.members, code));
  }
  if (std::unique_lock lock(lock_, std::try_to_lock); lock) operations_.make_progress();
}

Status CommunicatorCore::connections(std::span<const int> ranks, Rank* count) {
  std::lock_guard lock(lock_);
  *count = 0;
  for (const int r : ranks) {
    if (r < 0 || Rank(r) >= size()) return invalid(fmt::format("rank {}: expected 0 to {}", r, size() - 1));
    if (Rank(r) != rank() && !team_.ports->to(Rank(r)).in_memory) ++*count;
  }
  return {};
}

std::vector<Rank> CommunicatorCore::lost() {
  std::lock_guard lock(lock_);
  const Failure& failure = operations_.failure();
  if (failure.why().code() == GCCL_ERR_PEER_LOST && failure.culprit() < size()) return {failure.culprit()};
  return {};
}

Status CommunicatorCore::why() {
  std::lock_guard lock(lock_);
  return operations_.failure().why().copy_or_code();
}

Status CommunicatorCore::unsaid() {
  std::lock_guard lock(lock_);
  return operations_.failure().unless_said();
}

void CommunicatorCore::adopt(CommunicatorCore& made, std::size_t ranks_lost) noexcept {
  std::scoped_lock lock(abort_mutex_, lock_, made.lock_);
  assert(!busy() && !made.busy());  // operations refer to the team that they began with
  Failure &mine = operations_.failure(), &old = made.operations_.failure();
  old.set(mine.why().copy_or_code(), mine.culprit());
  old.acknowledge();
  mine.forget();
  count_links();
  recorder_.metrics().other_links(team_.world != made.team_.world);
  // A world of its own has a communicator of all its ranks, which is this one.
  if (team_.world == made.team_.world) made.team_.members.world = std::exchange(team_.members.world, false);
  team_.swap(made.team_);
  operations_.forget_messages();
  short_calls_.forget();
  supervisor_.look_again();
  splits_ = 0;
  recorder_.metrics().recovered(ranks_lost);
}

Status CommunicatorCore::dump(const std::string& path, const std::string& reason) {
  std::lock_guard lock(lock_);
  return gccl::dump(team_, operations_, path, reason);
}

bool CommunicatorCore::add_to(DumpedRank* all, std::int64_t until_ns) {
  std::unique_lock lock(lock_, std::defer_lock);
  if (!locks_until(lock, until_ns)) return false;
  all->communicators.push_back(dumped(team_, operations_));
  return true;
}

}  // namespace gccl
