// Ranks that wait for each other in a circle.
//
// A rank whose one thread waits begins nothing before that wait is over. So where rank 0 waits for something that rank
// 1 has not begun, and rank 1's thread is in a wait of its own, rank 0's wait ends after that one. Such an edge is
// certain, whatever is in flight. Deadlock detection by probes follows the edges (Chandy, Misra and Haas, "Distributed
// deadlock detection", 1983; their AND model): who waits sends a probe along its edges, and each rank that is still in
// the wait that the probe names passes it on along its own.
//
//   rank 0, in wait a, --(a; rank 1 in wait b)--> rank 1 --(a; rank 2 in wait c)--> rank 2 --(a; rank 0 in wait a)-->
//   rank 0
//
// A probe that comes back to the wait that it began in shows that this one ends after itself: never. Waits may be on
// different communicators; a probe travels on one that both ranks of its edge are in.
//
// A wait with a time limit may end by that. Where all wait in calls on one communicator it is of no use then, to
// nobody, so that the circle may as well end at once. Elsewhere the rank may go on, and make the call for which another
// waits.
#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/watch/note.hpp"

namespace gccl {
namespace {

// Most waits that stall end by themselves: a probe is sent later, and then less and less often.
constexpr std::int64_t kSeekNs = 200'000'000, kSeekPauseNs = 1'000'000'000, kSeekPauseNsMax = 8 * kSeekPauseNs;
constexpr std::int64_t kPassOnNs = 300'000'000;  // between two of one origin's
constexpr std::size_t kOutboxMax = 256;

}  // namespace

// 0: none. Numbers of waits are each communicator's own, and agreements have theirs. Where a communicator is freed, and
// the ranks' calls have differed, one wait is for two collectives, of which the second is begun in it: then it is
// another one.
std::uint64_t Watch::wait_of(const Record& record) {
  const Waiting& w = record.waiting_;
  if (!w.blocked || w.in == In::nothing) return 0;
  const std::uint64_t number =
      w.agrees() ? std::uint64_t(1) << 32 | begun(record) : w.number + (std::uint64_t(record.history.last()) << 33);
  return splitmix::mix(record.id_ + number * splitmix::kGolden) | 1;
}

// The collective that is waited for cannot end here before that rank has begun it, whatever its algorithm: the result
// is made of what it gives, or it is a barrier.
bool Watch::depends_on(const Record& record, Rank rank) {
  const Waiting& w = record.waiting_;
  if (w.checks || Descriptor::purpose_of(w.signature) == Purpose::links) return true;
  const auto kind = std::size_t(w.signature >> 60);
  if (kind >= collective_names().size()) return false;
  const auto collective = Collective(kind);
  if (collective == Collective::barrier) return true;
  const bool some = (w.signature & 0xffffffffu) != 0;  // its count, or a checksum of counts, of which any may be 0
  if (!some || has_counts(collective) || collective == Collective::sendrecv) return false;
  if (!has_root(collective)) return true;
  History::Entry call;
  if (!record.history.find(w.sequence, &call) || call.signature != w.signature) return false;
  return definition(collective).output.at_root ? call.root == record.rank_ : call.root == rank;
}

// This rank's wait ends after the one in which that rank has said that it is.
bool Watch::waits_in_vain(const Record& record, const Peer& peer) {
  const Waiting& w = record.waiting_;
  if (!w.blocked || !peer.state || peer.rank == record.rank_) return false;
  const Note& n = *peer.state;
  if (n.wait == 0 || !(n.flags & kBlocked) || !(n.flags & kAlone)) return false;
  // All that have not failed come to an agreement, and this rank knows of nobody that has.
  if (w.agrees()) return std::int32_t(begun(record) - n.agreements) > 0;
  if (w.in == In::recv) return peer.rank == w.peer && std::int32_t(w.message - n.sent) > 0;
  return w.in == In::collective && std::int32_t(w.sequence - n.sequence) > 0 &&
         ((w.receives && w.peer == peer.rank) || depends_on(record, peer.rank));
}

void Watch::seek_circle(Record& record) {
  const std::uint64_t wait = wait_of(record);
  if (wait != record.sought_in_) {
    record.sought_in_ = wait;
    record.seek_ns_ = now_ns_ + kSeekNs;
    record.seek_pause_ns_ = kSeekPauseNs;
    if (wait != 0) expect_notes();
  }
  if (wait == 0 || now_ns_ < record.seek_ns_) return;
  Probe probe;
  probe.origin = rank_;
  probe.origins_wait = wait;
  if (!pass_on(record, probe)) return;
  record.seek_ns_ = now_ns_ + record.seek_pause_ns_;
  record.seek_pause_ns_ = std::min(2 * record.seek_pause_ns_, kSeekPauseNsMax);
}

// False: to nobody.
bool Watch::pass_on(const Record& record, const Probe& probe) {
  std::vector<const Peer*> peers;
  for (const Peer& p : record.peers_)
    if (waits_in_vain(record, p)) peers.push_back(&p);
  if (peers.empty() || !alone()) return false;
  Probe next = probe;
  next.apart |= probe.ranks > 0 && probe.communicator != record.id_;
  next.communicator = record.id_;
  next.limited |= record.waiting_.limited;
  next.agrees |= record.waiting_.agrees();
  if (next.ranks < Probe::kNamed) next.by[next.ranks] = rank_;
  ++next.ranks;
  for (const Peer* p : peers) {
    next.wait = p->state->wait;
    const Rank world = record.world_rank_[p->rank];
    if (link_to(world).outbox.size() < kOutboxMax) send(world, next);  // else it has been stopped since
  }
  return true;
}

void Watch::heard(const Probe& probe) {
  const auto record =
      std::ranges::find_if(records_, [&](const auto& r) { return probe.wait != 0 && wait_of(*r) == probe.wait; });
  if (record == records_.end()) return;
  if (probe.origin == rank_) {
    if (probe.origins_wait != probe.wait || probe.ranks < 2 || !alone()) return;
    const bool apart = probe.apart || probe.communicator != (*record)->id_;
    if (probe.limited && (apart || probe.agrees)) return;
    differs(**record, {probe.by, probe.by + std::min<Rank>(probe.ranks, Probe::kNamed)}, circle_text(**record, probe));
    (*record)->agreement_differs_ |= probe.agrees;
    return;
  }
  if (passed_on_in_ != probe.wait) {
    passed_on_.clear();
    passed_on_in_ = probe.wait;
  }
  std::int64_t& last_ns = passed_on_[probe.origin];
  if (last_ns != 0 && now_ns_ - last_ns < kPassOnNs) return;
  last_ns = now_ns_;
  pass_on(**record, probe);
}

// Whom this rank waits for, what that rank is in, and who else is in the circle.
std::string Watch::circle_text(const Record& record, const Probe& probe) {
  const auto ranks = Rank(record.world_rank_.size());
  const Waiting& w = record.waiting_;
  std::string text = w.agrees()         ? agreement_text(w.in)
                     : w.in == In::recv ? fmt::format("recv from {}", rank_text(w.peer, record.world_rank_))
                                        : text_of_signature(w.signature, {w.sequence, ranks});
  const auto next = std::ranges::find_if(record.peers_, [&](const Peer& p) {
    return record.world_rank_[p.rank] == probe.by[1] && waits_in_vain(record, p);
  });
  if (next != record.peers_.end()) {
    const Note& n = *next->state;
    const std::string who = rank_text(next->rank, record.world_rank_);
    if (n.in == In::elsewhere) {
      text += fmt::format(": {} waits in {}{}", who, elsewhere_text(n), awaited_text(n, " for"));
      if (probe.ranks == 2 && w.in == In::collective && n.flags & kCollective)
        return text + ": the calls on the two are in crossed order";
    } else if (n.in == In::collective) {
      text += fmt::format(": {} calls {}", who, text_of_signature(n.signature, {n.sequence, ranks}));
    } else if (agrees(n.in)) {
      text += fmt::format(": {} calls {}", who, agreement_text(n.in));
    } else {
      text += fmt::format(": {} calls {} {}", who, n.in == In::recv ? "recv from" : "send to",
                          rank_text(n.peer, record.world_rank_));
    }
  }
  std::string all;
  for (Rank i = 0; i < probe.ranks && i < Probe::kNamed; ++i)
    all += fmt::format("{}{}", i == 0 ? "" : i + 1 == probe.ranks ? " and " : ", ", probe.by[i]);
  if (probe.ranks > Probe::kNamed) all += fmt::format(" and {} more", probe.ranks - Probe::kNamed);
  text += probe.ranks > 2 ? fmt::format(": world ranks {} wait for each other in a circle", all)
                          : ": they wait for each other";
  return probe.agrees ? text + ", and no rank has failed" : text;
}

}  // namespace gccl
