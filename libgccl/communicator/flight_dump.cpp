// A rank's dump, from the histories of its communicators and the operations in flight.
#include <algorithm>

#include "libgccl/base/log.hpp"
#include "libgccl/communicator/communicator.hpp"

namespace gccl {
namespace {

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

}  // namespace

DumpedCall Communicator::dumped(const Operation& op) const {
  DumpedCall c = called(op.work.what);
  c.state = op.started ? "started" : "scheduled";
  if (!op.started || op.stage.load(std::memory_order_relaxed) != Operation::Stage::pending) return c;
  c.waits_for = rank();
  c.waits_what = op.awaited(&c.waits_for);
  return c;
}

DumpedCommunicator Communicator::dumped() const {
  DumpedCommunicator d{.id = team_.members.id,
                       .world = team_.members.world,
                       .rank = rank(),
                       .world_rank = team_.members.world_rank,
                       .failure = failure_.why().text(),
                       .calls = {},
                       .transfers = {}};
  const History& history = team_.record->history;
  const std::uint32_t last = history.last();
  for (std::uint32_t left = std::min(last, History::kKept - 1); left-- > 0;) {
    const std::uint32_t sequence = last - left;
    History::Entry e;
    if (!history.find(sequence, &e)) continue;
    const auto in_flight = std::find_if(queue_.begin(), queue_.end(), [&](const Operation* op) {
      return op->work.what.sequence == sequence && !op->comparison;
    });
    DumpedCall c;
    if (in_flight != queue_.end()) {
      c = dumped(**in_flight);
    } else {
      c = called(Descriptor::of(e.signature, sequence, e.root, e.count, e.element_bytes));
      c.state = "completed";
    }
    const Flight::Times& times = team_.flight.of(sequence);
    if (times.algorithm) c.algorithm = times.algorithm;
    if (times.began) c.began_ns = team_.world->clock.unix_ns(times.began);
    if (times.ended) c.ended_ns = team_.world->clock.unix_ns(times.ended);
    d.calls.push_back(std::move(c));
  }
  for (const Operation* op : transfers_) {
    d.transfers.push_back(dumped(*op));
    const std::int64_t ago_ns = now_ns() - op->started_ns;
    d.transfers.back().began_ns = team_.world->clock.unix_ns(ticks()) - ago_ns;
  }
  return d;
}

// With this communicator's lock held.
Status Communicator::dump_locked(const std::string& path, const std::string& reason) {
  DumpedRank d{.rank = team_.world->start.rank,
               .size = team_.world->start.size,
               .host = team_.world->start.host,
               .reason = reason,
               .communicators = {}};
  d.communicators.push_back(dumped());
  for_each_communicator([&](Communicator& other) {
    if (&other == this || other.team_.world != team_.world) return;
    if (std::unique_lock lock(other.lock_, std::try_to_lock); lock) d.communicators.push_back(other.dumped());
  });
  return write_dump(d, path);
}

Status Communicator::dump(const std::string& path, const std::string& reason) {
  std::lock_guard lock(lock_);
  return dump_locked(path, reason);
}

// The first failure of the rank that no caller wanted.
void Communicator::dump_failure() noexcept {
  const int code = failure_.why().code();
  if (team_.world->dumps.prefix.empty() || code == GCCL_ERR_INVALID_USAGE || code == GCCL_ERR_REVOKED ||
      !team_.record || !team_.ports)
    return;
  if (team_.world->dumped.exchange(true)) return;
  try {
    const std::string file = dump_file(team_.world->dumps, team_.world->start.rank);
    if (const Status s = dump_locked(file, failure_.why().text()); !s.ok()) log_line(kLogWarnings, s.text());
  } catch (...) {  // memory is short: then there is none
  }
}

void Communicator::dump_if_asked() noexcept {
  const std::uint32_t asked = dumps_asked();
  if (team_.world->asked.load(std::memory_order_relaxed) == asked || team_.world->dumps.prefix.empty()) return;
  if (team_.world->asked.exchange(asked) == asked) return;
  try {
    const std::string file = dump_file(team_.world->dumps, team_.world->start.rank);
    if (const Status s = dump_locked(file, "GCCL_DUMP_SIGNAL"); !s.ok()) log_line(kLogWarnings, s.text());
  } catch (...) {
  }
}

}  // namespace gccl
