#include "libgccl/communicator/record/flight_dump.hpp"

#include <algorithm>
#include <deque>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/communicator/communicator_core.hpp"

namespace gccl {
namespace {

// So long a dump waits for what other threads are busy with, who may wait for this one's communicator meanwhile.
constexpr std::int64_t kWaitNs = 100'000'000;

// What was called; not yet what has become of it.
DumpedCall called(const Descriptor& what) {
  DumpedCall c;
  c.sequence = what.sequence;
  c.name = kind_name(what.kind);
  c.text = what.text();
  c.own = what.purpose == Purpose::itself;
  c.dtype = dtype_text(what.dtype, what.element_bytes);
  c.op = op_text(what.op);
  c.count = what.count;
  c.root = what.root;
  return c;
}

// A thread does nothing else until it has ended, or is about to.
bool waited_for(const Operation& op) { return op.blocking || op.work.blocking; }

// What has become of a call that this operation carries out.
void add_state(DumpedCall* c, const Operation& op, Rank rank) {
  c->state = op.started ? "started" : "scheduled";
  c->waits = c->waits || waited_for(op);
  if (!op.started || op.stage.load(std::memory_order_relaxed) != Operation::Stage::pending) return;
  c->waits_for = rank;
  c->waits_what = op.awaited(&c->waits_for);
}

// The same of collectives, in their order: there may be any number in flight.
class States {
 public:
  States(const Team& team, const Operations& operations)
      : team_(team), queue_(operations.collectives()), next_(queue_.begin()) {
    for (const Operation* op : queue_)
      if (waited_for(*op)) waited_for_ = std::max(waited_for_, op->work.what.sequence);
  }

  // Besides a collective's own operation others may carry it out: what compares the ranks' calls or results, and what
  // reports links. The first of them that has started says what it waits for.
  void add(DumpedCall* c) {
    const bool failed = !team_.flight.completed(c->sequence);
    c->state = failed ? "started" : "completed";
    c->waits = c->sequence <= waited_for_;
    while (next_ != queue_.end() && (*next_)->work.what.sequence < c->sequence) ++next_;
    for (auto at = next_; at != queue_.end() && (*at)->work.what.sequence == c->sequence; ++at) {
      add_state(c, **at, team_.rank());
      if ((*at)->started) return;
    }
    if (!failed) return;
    for (const DumpedCall& kept : team_.flight.unended().calls)
      if (kept.sequence == c->sequence) {
        c->state = kept.state;
        c->waits = kept.waits;
        c->waits_for = kept.waits_for;
        c->waits_what = kept.waits_what;
      }
  }

 private:
  const Team& team_;
  const std::deque<Operation*>& queue_;
  std::deque<Operation*>::const_iterator next_;  // none before it carries out a collective that is still to come
  std::uint32_t waited_for_ = 0;                 // a thread that waits for this one waits for those before it, too
};

// Collectives in flight that the history does not keep any more: the first of them is the one that is carried out.
void add_older(const Team& team, const Operations& operations, States* states, std::vector<DumpedCall>* out) {
  const std::uint32_t last = team.record->history.last();
  const std::uint32_t kept_from = last - std::min(last, History::kKept - 1) + 1;
  std::uint32_t before = 0;
  const auto next = [&](std::uint32_t sequence) {
    if (sequence >= kept_from || sequence <= before || out->size() >= History::kKept - 1) return false;
    before = sequence;
    return true;
  };
  for (const DumpedCall& kept : team.flight.unended().calls)
    if (next(kept.sequence)) out->push_back(kept);
  for (const Operation* op : operations.collectives()) {
    if (op->internal() || !next(op->work.what.sequence)) continue;
    out->push_back(called(op->work.what));
    states->add(&out->back());
  }
}

void add_transfer(const Team& team, const Operation& op, std::vector<DumpedCall>* out) {
  DumpedCall c = called(op.work.what);
  c.number = op.message;
  add_state(&c, op, team.rank());
  c.began_ns = team.world->clock.unix_ns(ticks()) - (now_ns() - op.started_ns);
  out->push_back(std::move(c));
}

// A collective has begun since then, and ended.
bool went_on(const Team& team, const Operations& operations, std::uint64_t since_ticks) {
  const auto& queue = operations.collectives();
  const std::uint32_t unended = queue.empty() ? UINT32_MAX : queue.front()->work.what.sequence;
  bool found = false;
  team.record->history.each([&](std::uint32_t sequence, const History::Entry&) {
    found = found || (sequence < unended && team.flight.of(sequence).began > since_ticks);
  });
  return found;
}

// To the file that the environment names.
void write_unasked(const Team& team, const Operations& operations, std::string_view reason) noexcept {
  try {
    const std::string file = dump_file(team.world->dumps, team.world->bootstrap.rank);
    if (const Status s = dump(team, operations, file, std::string(reason)); !s.ok()) log_line(kLogWarnings, s.text());
  } catch (...) {  // memory is short: then there is none
  }
}

}  // namespace

DumpedCommunicator dumped(const Team& team, const Operations& operations) {
  DumpedCommunicator d{.id = team.members.id,
                       .world = team.members.world,
                       .rank = team.rank(),
                       .world_rank = team.members.world_rank,
                       .failure = operations.failure().why().text(),
                       .failure_code = operations.failure().why().code(),
                       .failure_rank = std::min(operations.failure().culprit(), team.size() - 1),
                       .failure_ranks = operations.failure().ranks(),
                       .failure_unpolled_ns = team.flight.unpolled_ns(),
                       .calls = {},
                       .transfers = {},
                       .messages = {}};
  States states(team, operations);
  add_older(team, operations, &states, &d.calls);
  team.record->history.each([&](std::uint32_t sequence, const History::Entry& e) {
    const Descriptor what = Descriptor::of(e.signature, sequence, e.root, e.count, e.element_bytes);
    DumpedCall c = called(what);
    if (c.own && has_counts(Collective(what.kind))) {
      c.lengths = what.count;
      c.count = team.flight.elements(sequence);
    }
    states.add(&c);
    const Flight::Times& times = team.flight.of(sequence);
    if (times.algorithm) c.algorithm = times.algorithm;
    if (times.began) c.began_ns = team.world->clock.unix_ns(times.began);
    if (times.ended) c.ended_ns = team.world->clock.unix_ns(times.ended);
    d.calls.push_back(std::move(c));
  });
  d.transfers = team.flight.unended().transfers;
  for (const Operation* op : operations.transfers()) add_transfer(team, *op, &d.transfers);
  for (const Operation* op : operations.to_myself()) add_transfer(team, *op, &d.transfers);
  for (Rank r = 0; r < team.size(); ++r) {
    const DumpedCommunicator::Messages m{r, team.record->messages.sent(r), team.record->messages.received(r)};
    if (m.sent > 0 || m.received > 0) d.messages.push_back(m);
  }
  return d;
}

void keep_unended(Team& team, const Operations& operations) noexcept try {
  if (!operations.collectives().empty()) team.flight.failed(operations.collectives().front()->work.what.sequence);
  if (!operations.busy() || !team.record || !team.ports) return;
  DumpedCommunicator d = dumped(team, operations);
  std::erase_if(d.calls, [](const DumpedCall& c) { return c.state == std::string_view("completed"); });
  team.flight.keep({.calls = std::move(d.calls), .transfers = std::move(d.transfers)});
} catch (...) {  // memory is short: then dumps say only that these calls have not completed
}

Status dump(const Team& team, const Operations& operations, const std::string& path, const std::string& reason) {
  const Bootstrap& bootstrap = team.world->bootstrap;
  DumpedRank d{.world = team.world->id,
               .rank = bootstrap.rank,
               .size = bootstrap.size,
               .host = bootstrap.host,
               .reason = reason,
               .written_ns = team.world->clock.unix_ns(ticks()),
               .communicators = {},
               .skipped = std::nullopt};
  d.communicators.push_back(dumped(team, operations));
  const std::int64_t until_ns = now_ns() + kWaitNs;
  std::size_t skipped = 0;
  const bool all = for_each_communicator(
      [&](CommunicatorCore& other) {
        if (&other.team() == &team || &other.world() != team.world.get()) return;  // the former is locked
        skipped += !other.add_to(&d, until_ns);
      },
      until_ns);
  if (all) d.skipped = skipped;
  return write_dump(d, path);
}

void dump_failure(const Team& team, const Operations& operations) noexcept {
  const Status& why = operations.failure().why();
  World& world = *team.world;
  if (world.dumps.prefix.empty() || why.code() == GCCL_ERR_REVOKED || !team.record || !team.ports) return;
  if (const std::uint64_t before = world.dumped_ticks; world.dumped->exchange(true)) {
    // What fails because of the earlier failure would only hide that.
    if (before == 0 || !went_on(team, operations, before)) return;
  }
  write_unasked(team, operations, why.text());
  world.dumped_ticks = ticks();
}

void dump_if_asked(const Team& team, const Operations& operations) noexcept {
  World& world = *team.world;
  const std::uint32_t asked = dumps_asked();
  if (world.asked.load(std::memory_order_relaxed) == asked || world.dumps.prefix.empty()) return;
  if (world.asked.exchange(asked) != asked) write_unasked(team, operations, "GCCL_DUMP_SIGNAL");
}

}  // namespace gccl
