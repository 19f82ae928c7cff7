#include "libgccl/communicator/record/flight_dump.hpp"

#include <algorithm>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/communicator/communicator_core.hpp"

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

DumpedCall dumped(const Operation& op, Rank rank) {
  DumpedCall c = called(op.work.what);
  c.state = op.started ? "started" : "scheduled";
  if (!op.started || op.stage.load(std::memory_order_relaxed) != Operation::Stage::pending) return c;
  c.waits_for = rank;
  c.waits_what = op.awaited(&c.waits_for);
  return c;
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
                       .calls = {},
                       .transfers = {}};
  const History& history = team.record->history;
  const auto& collectives = operations.collectives();
  const std::uint32_t last = history.last();
  for (std::uint32_t left = std::min(last, History::kKept - 1); left-- > 0;) {
    const std::uint32_t sequence = last - left;
    History::Entry e;
    if (!history.find(sequence, &e)) continue;
    const auto in_flight = std::find_if(collectives.begin(), collectives.end(), [&](const Operation* op) {
      return op->work.what.sequence == sequence && !op->internal();
    });
    DumpedCall c;
    if (in_flight != collectives.end()) {
      c = dumped(**in_flight, team.rank());
    } else {
      c = called(Descriptor::of(e.signature, sequence, e.root, e.count, e.element_bytes));
      c.state = "completed";
    }
    const Flight::Times& times = team.flight.of(sequence);
    if (times.algorithm) c.algorithm = times.algorithm;
    if (times.began) c.began_ns = team.world->clock.unix_ns(times.began);
    if (times.ended) c.ended_ns = team.world->clock.unix_ns(times.ended);
    d.calls.push_back(std::move(c));
  }
  for (const Operation* op : operations.transfers()) {
    d.transfers.push_back(dumped(*op, team.rank()));
    const std::int64_t ago_ns = now_ns() - op->started_ns;
    d.transfers.back().began_ns = team.world->clock.unix_ns(ticks()) - ago_ns;
  }
  return d;
}

Status dump(const Team& team, const Operations& operations, const std::string& path, const std::string& reason) {
  const Bootstrap& bootstrap = team.world->bootstrap;
  DumpedRank d{
      .rank = bootstrap.rank, .size = bootstrap.size, .host = bootstrap.host, .reason = reason, .communicators = {}};
  d.communicators.push_back(dumped(team, operations));
  for_each_communicator([&](CommunicatorCore& other) {  // this one is locked, too
    if (&other.world() == team.world.get()) other.add_to(&d);
  });
  return write_dump(d, path);
}

void dump_failure(const Team& team, const Operations& operations) noexcept {
  const Status& why = operations.failure().why();
  if (team.world->dumps.prefix.empty() || why.code() == GCCL_ERR_INVALID_USAGE || why.code() == GCCL_ERR_REVOKED ||
      !team.record || !team.ports)
    return;
  if (!team.world->dumped.exchange(true)) write_unasked(team, operations, why.text());
}

void dump_if_asked(const Team& team, const Operations& operations) noexcept {
  World& world = *team.world;
  const std::uint32_t asked = dumps_asked();
  if (world.asked.load(std::memory_order_relaxed) == asked || world.dumps.prefix.empty()) return;
  if (world.asked.exchange(asked) != asked) write_unasked(team, operations, "GCCL_DUMP_SIGNAL");
}

}  // namespace gccl
