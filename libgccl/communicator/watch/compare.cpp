// What a watch concludes from the notes that it has heard.
#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "libgccl/communicator/watch/note.hpp"

namespace gccl {
namespace {

// Where peers wait for each other by what they say, they must say so for so long.
constexpr std::int64_t kSeenNs = 500'000'000;
constexpr std::int64_t kNarrowNs = 600'000'000;  // a peer that does not say for so long what it called has gone on

}  // namespace

void Watch::differs(Record& record, std::vector<Rank> ranks, const std::string& text, int code) {
  if (!record.differs_.what.ok()) return;
  const auto first = std::ranges::find(record.world_rank_, ranks.front());
  assert(first != record.world_rank_.end());
  record.differs_ = {
      .what = Status::error(fmt::format("{}, {}", rank_text(record.rank_, record.world_rank_, true), text), code),
      .rank = Rank(first - record.world_rank_.begin()),
      .ranks = std::move(ranks)};
}

std::vector<Rank> Watch::both(const Record& record, const Peer& peer) const {
  return {rank_, record.world_rank_[peer.rank]};
}

void Watch::compare(Record& record, Peer& peer, const Note& note) {
  if (note.sequence == 0) return;
  assert(peer.rank < record.world_rank_.size());
  const std::string who = rank_text(peer.rank, record.world_rank_);
  const bool of_call = note.flags & kOfCall;
  const std::string theirs =
      of_call ? text_of_signature(note.signature, note.sequence, note.peer, note.count, note.element_bytes) : "";
  if (std::int32_t(record.history.last() - note.sequence) < 0) {
    if (record.leaving_) {
      differs(record, {rank_}, fmt::format("Finalize: {} calls {}", who, of_call ? theirs : "one more collective"));
    } else if (of_call && peer.ahead.size() < kAheadMax) {
      peer.ahead.push_back(note);
    }
    return;
  }
  History::Entry mine;
  if (!record.history.find(note.sequence, &mine)) return;
  if (mine.digest == note.digest) {
    const std::uint32_t last = record.history.last();  // numbers start again after 2^32 calls
    if (last - note.sequence < last - peer.confirmed) peer.confirmed = note.sequence;
    return narrow(record, peer);
  }
  if (!of_call) return;  // the call itself follows, or has come before
  const std::string here = text_of_signature(mine.signature, note.sequence, mine.root, mine.count, mine.element_bytes);
  if (here != theirs) return differs(record, both(record, peer), fmt::format("{}: {} calls {}", here, who, theirs));
  if (peer.differs_at == 0 || std::int32_t(note.sequence - peer.differs_at) < 0) peer.differs_at = note.sequence;
  narrow(record, peer);
}

// The first call that differs comes after `confirmed`, and `differs_at`, the same call on both ranks, is not before it:
// the peer is asked for the one halfway.
void Watch::narrow(Record& record, Peer& peer) {
  if (peer.differs_at == 0 || !record.differs_.what.ok()) return;
  const std::uint32_t among = peer.differs_at - peer.confirmed;
  const std::uint32_t later = record.history.last() - peer.differs_at;
  const std::uint32_t back = std::min(among / 2, History::kKept - 2 - std::min(later, History::kKept - 2));
  if (back == 0) return differs_before(record, peer);
  const std::uint32_t halfway = peer.differs_at - back;
  if (std::exchange(peer.asked_for, halfway) == halfway) return;  // other notes come meanwhile
  peer.narrowed_ns = now_ns_;
  note_call(record, peer, halfway, kQuestion);
}

// `anew`: in another call than before, in which the peer may be, too.
void Watch::go_on_narrowing(Record& record, Peer& peer, bool anew) {
  if (peer.differs_at == 0) return;
  if (anew) peer.asked_for = 0;
  if (peer.asked_for != 0 && now_ns_ - peer.narrowed_ns >= kNarrowNs) return differs_before(record, peer);
  narrow(record, peer);
}

// As far as is known, or kept.
void Watch::differs_before(Record& record, const Peer& peer) {
  History::Entry e;
  const std::string call = record.history.find(peer.differs_at, &e)
                               ? text_of_signature(e.signature, peer.differs_at, e.root, e.count, e.element_bytes)
                               : fmt::format("collective #{}", peer.differs_at);
  differs(record, both(record, peer),
          fmt::format("{}: {}{}", call, rank_text(peer.rank, record.world_rank_),
                      peer.confirmed + 1 == peer.differs_at
                          ? " calls the same with other lengths"
                          : fmt::format(" made other calls before its call #{}", peer.differs_at)));
}

void Watch::compare_lengths(Record& record, const Peer& peer, const Note& note) {
  const Exchanged& e = record.exchanged_;
  // 0: none yet, whatever the note says.
  if (e.sequence == 0 || e.sequence != note.sequence) return;
  assert(peer.rank < e.due.size() && e.due.size() == e.sent.size());
  const auto say = [&](const char* theirs, std::uint64_t there, const char* ours, std::size_t here) {
    differs(record, both(record, peer),
            fmt::format("alltoallv #{}: {} calls it with {}[{}] {} where {}[{}] here is {}", e.sequence,
                        rank_text(peer.rank, record.world_rank_), theirs, record.rank_, there, ours, peer.rank, here));
  };
  if (note.digest != e.due[peer.rank]) say("sendcounts", note.digest, "recvcounts", e.due[peer.rank]);
  if (note.count != e.sent[peer.rank]) say("recvcounts", note.count, "sendcounts", e.sent[peer.rank]);
}

// What a peer will not do any more: a collective, or its side of a message.
void Watch::compare_left(Record& record, const Peer& peer) {
  compare_messages(record, peer);
  const Waiting& w = record.waiting_;
  if (!peer.state || peer.state->in != In::finalize || w.in != In::collective ||
      std::int32_t(w.sequence - peer.state->sequence) <= 0)
    return;
  differs(record, {record.world_rank_[peer.rank]},
          fmt::format("{}: {} calls Finalize",
                      text_of_signature(w.signature, {w.sequence, Rank(record.world_rank_.size())}),
                      rank_text(peer.rank, record.world_rank_)));
}

// All messages that have been begun are counted, wherever they are on their way: so none is taken for missing.
void Watch::compare_messages(Record& record, const Peer& peer) {
  const Waiting& w = record.waiting_;
  if ((w.in != In::recv && w.in != In::send) || !peer.state || !(peer.state->flags & kLeaves)) return;
  const Note& n = *peer.state;
  const std::string who = rank_text(peer.rank, record.world_rank_);
  const auto say = [&](const char* call, const char* theirs, std::uint32_t there, const char* ours,
                       std::uint32_t here) {
    const std::string leaves = n.in == In::finalize
                                   ? "Finalize"
                                   : text_of_signature(n.signature, {n.sequence, Rank(record.world_rank_.size())});
    differs(record, {record.world_rank_[peer.rank]},
            fmt::format("{}{}: it calls {} and has {} {}{} where this rank {} {}", call, who, leaves, theirs, there,
                        there == 1 ? " message" : " messages", ours, here));
  };
  const std::uint32_t received = record.messages.received(peer.rank), sent = record.messages.sent(peer.rank);
  if (std::int32_t(received - n.sent) > 0) return say("recv from ", "sent", n.sent, "receives", received);
  if (w.in == In::send && w.peer == peer.rank && std::int32_t(sent - n.received) > 0)
    say("send to ", "received", n.received, "has sent", sent);
}

// A receive from oneself, or a send to oneself that is too long to be kept: nobody else can take it.
void Watch::compare_self(Record& record) {
  const Waiting& w = record.waiting_;
  if ((w.in != In::recv && w.in != In::send) || !w.blocked || w.peer != record.rank_ || !alone()) return;
  const bool receives = w.in == In::recv;
  differs(
      record, {rank_},
      fmt::format("{} {}: this rank calls no such {}, and waits for nothing else", receives ? "recv from" : "send to",
                  rank_text(w.peer, record.world_rank_), receives ? "send" : "receive"));
}

std::uint32_t Watch::begun(const Record& record) { return record.agreements.load(std::memory_order_relaxed); }

// This rank waits, in a collective or an agreement, for one that has not come to it: it agrees on who has failed, there
// or on another communicator, in an agreement to which this rank has not come, and knows of nobody. On another one it
// may be that a time limit ends one of the waits, and the rank makes the missing call.
bool Watch::waits_for_agreement(const Record& record, const Peer& peer) const {
  const Waiting& w = record.waiting_;
  const Note& n = *peer.state;
  if (!w.blocked || !(n.flags & kBlocked) || !(n.flags & kAlone)) return false;
  if (w.in == In::collective ? w.peer != peer.rank || std::int32_t(w.sequence - n.sequence) <= 0
                             : !w.agrees() || std::int32_t(begun(record) - n.agreements) <= 0)
    return false;
  if (!alone()) return false;
  if (agrees(n.in)) return w.in == In::collective && std::int32_t(n.agreements - begun(record)) > 0;
  if (w.limited || n.limited) return false;
  return n.in == In::elsewhere && agrees(n.there) && std::any_of(records_.begin(), records_.end(), [&](const auto& r) {
           return r->id_ == n.count && !r->leaving_ && !r->broken.load(std::memory_order_relaxed) &&
                  std::int32_t(n.agreements_there - begun(*r)) > 0;
         });
}

// Where no other thread may make the missing call, neither goes on. The peer must say so again some time after it was
// first seen: what it said first may be of an agreement that is over.
void Watch::compare_agreement(Record& record, Peer& peer) {
  const Waiting& w = record.waiting_;
  const std::int64_t since_ns = std::exchange(peer.agrees_since_ns, 0);
  if (!peer.state || !record.differs_.what.ok()) return;
  const Note& n = *peer.state;
  const bool left = w.agrees() && n.in == In::finalize && std::int32_t(begun(record) - n.agreements) > 0;
  if (!left) {
    if (!waits_for_agreement(record, peer)) return;
    peer.agrees_since_ns = since_ns ? since_ns : now_ns_;
    if (peer.heard_ns < peer.agrees_since_ns + kSeenNs) return;
  }
  const std::string here =
      w.agrees() ? agreement_text(w.in) : text_of_signature(w.signature, {w.sequence, Rank(record.world_rank_.size())});
  differs(record, left ? std::vector{record.world_rank_[peer.rank]} : both(record, peer),
          fmt::format("{}: {} calls {}, and no rank has failed", here, rank_text(peer.rank, record.world_rank_),
                      left           ? "Finalize"
                      : agrees(n.in) ? agreement_text(n.in)
                                     : elsewhere_text(n)));
  record.agreement_differs_ = true;
}

// Which ranks wait for which, from this rank's wait in a call on: ranks in the same call, then ranks in one call of
// another communicator, the first of which has not come to this one. Where that ends at this rank, and this rank has
// not come to the other call, nobody ever goes on. Null where it does not, or where another thread or the end of a time
// limit may help. What a rank has said of whom it waits for stays true while that one has not come; *heard_ns is when
// the least recent of them was heard.
const Watch::Peer* Watch::crossed(const Record& record, std::int64_t* heard_ns) const {
  const Waiting& w = record.waiting_;
  if (w.in != In::collective || !w.blocked || w.limited || w.peer >= record.world_rank_.size()) return nullptr;
  const Peer* first = nullptr;
  Rank next = record.world_rank_[w.peer];
  *heard_ns = INT64_MAX;
  for (std::size_t i = 0; i < record.peers_.size(); ++i) {
    const auto peer = std::find_if(record.peers_.begin(), record.peers_.end(),
                                   [&](const Peer& p) { return record.world_rank_[p.rank] == next; });
    if (peer == record.peers_.end() || !peer->state) return nullptr;
    const Note& n = *peer->state;
    if (n.limited) return nullptr;
    *heard_ns = std::min(*heard_ns, peer->heard_ns);
    if (!first && n.in == In::collective && n.peer < record.world_rank_.size() &&
        Descriptor::calls_ahead(n.signature, w.sequence) == 0) {
      next = record.world_rank_[n.peer];
      continue;
    }
    if (n.in != In::elsewhere || !(n.flags & kCollective)) return nullptr;
    if (!first) {
      if (!(n.flags & kBlocked) || !(n.flags & kAlone) || std::int32_t(w.sequence - n.sequence) <= 0) return nullptr;
      first = &*peer;
    } else if (n.count != first->state->count || !Descriptor::same_sequence(n.signature, first->state->signature)) {
      return nullptr;
    }
    next = n.peer;
    if (next != rank_) continue;
    const auto other = std::find_if(records_.begin(), records_.end(), [&](const auto& r) { return r->id_ == n.count; });
    const bool to_come = other != records_.end() && !(*other)->broken.load(std::memory_order_relaxed) &&
                         !(*other)->leaving_ && Descriptor::calls_ahead(n.signature, (*other)->history.last()) > 0;
    return to_come && alone() ? first : nullptr;
  }
  return nullptr;
}

// All of them must say so again some time after it was first seen.
void Watch::compare_crossed(Record& record, std::int64_t now_ns) {
  std::int64_t heard_ns = 0;
  const Peer* const p = crossed(record, &heard_ns);
  if (!p) {
    record.crossed_ = {};
    return;
  }
  const Waiting& w = record.waiting_;
  const Crossed now{w.sequence, p->rank, p->state->peer, p->state->signature, p->state->count, 0};
  if (!now.same(record.crossed_)) {
    record.crossed_ = now;
    record.crossed_.since_ns = now_ns;
  }
  if (heard_ns < record.crossed_.since_ns + kSeenNs) return;
  differs(record, both(record, *p),
          fmt::format("{}: {} waits in {} for world rank {}: the calls on the two are in crossed order",
                      text_of_signature(w.signature, {w.sequence, Rank(record.world_rank_.size())}),
                      rank_text(p->rank, record.world_rank_), elsewhere_text(*p->state), p->state->peer));
}

}  // namespace gccl
