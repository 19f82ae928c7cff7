#include "libgccl/communicator/watch/watch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <mutex>
#include <utility>

#include "libgccl/base/process.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/completions.hpp"
#include "libgccl/communicator/watch/note.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kAskNs = 300'000'000;    // between two questions to one peer
constexpr std::int64_t kFreshNs = 10 * kAskNs;  // a peer's answer counts for so long: on a busy machine they are late
constexpr Rank kAllMax = 32;  // in larger communicators notes go to some ranks and to those waited for
constexpr std::uint64_t kSignature = 0x6e6f746573;  // of the messages that carry notes
constexpr std::uint64_t kIdOfPorts = 0x77617463682d3121;
constexpr int kPollsPerTurn = 64;
constexpr std::size_t kLeftMax = 1024;  // communicators that are remembered

// A number for what one rank sends to another: in a call, or (0) in none.
std::uint64_t of_pair(Rank from, Rank to, std::uint32_t sequence, std::uint64_t amount) {
  return amount ? splitmix::mix(splitmix::hash(std::uint64_t(from) << 32 | to) + sequence + amount * splitmix::kGolden)
                : 0;
}

}  // namespace

std::string Watch::elsewhere_text(const Note& n) {
  const std::string call = agrees(n.there) ? agreement_text(n.there)
                           : n.flags & kCollective
                               ? text_of_signature(n.signature, {Descriptor::sequence_in(n.signature), 0})
                               : "a send or recv";
  return fmt::format("{} on another communicator (of {} ranks)", call, n.element_bytes);
}

// All come to an agreement.
std::string Watch::awaited_text(const Note& n, const char* before) {
  return agrees(n.there) ? "" : fmt::format("{} world rank {}", before, n.peer);
}

const char* Watch::agreement_text(In in) {
  return in == In::agree ? "GCCL_Comm_agree" : in == In::shrink ? "GCCL_Comm_shrink" : "GCCL_Comm_grow";
}

// ---- Records ----

Watch::Record::Record(std::uint64_t id, Rank rank, std::vector<Rank> world_rank)
    : messages(world_rank.size()), id_(id), rank_(rank), world_rank_(std::move(world_rank)) {
  assert(rank < world_rank_.size());
  // Everybody, or those at distances of powers of two, and later those that are waited for: then the ranks that wait
  // are connected among each other unless most of them have gone, and who differs from all others is found by its
  // neighbours.
  const auto n = Rank(world_rank_.size());
  std::vector<Rank> ranks;
  for (Rank distance = 1; distance < n; distance = n <= kAllMax ? distance + 1 : distance * 2) {
    ranks.push_back((rank + distance) % n);
    ranks.push_back((rank + n - distance) % n);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  for (const Rank r : ranks) {
    peers_.emplace_back();
    peers_.back().rank = r;
  }
}
Watch::Record::~Record() = default;

Watch::Peer& Watch::peer_of(Record& record, Rank rank) {
  for (Peer& p : record.peers_)
    if (p.rank == rank) return p;
  record.peers_.emplace_back().rank = rank;
  return record.peers_.back();
}

std::shared_ptr<Watch::Record> Watch::join(std::uint64_t id, Rank rank, std::vector<Rank> world_rank) {
  auto record = std::make_shared<Record>(id, rank, std::move(world_rank));
  std::lock_guard lock(lock_);
  records_.push_back(record);
  return record;
}

void Watch::leave(const Record& record) {
  std::lock_guard lock(lock_);
  left_[leaves_++ % kLeftMax] = {record.id_, record.history.last(), begun(record)};
  std::erase_if(records_, [&](const auto& r) { return r.get() == &record; });
}

void Watch::leaving(Record& record) {
  std::lock_guard lock(lock_);
  record.leaving_ = true;
}

void Watch::over(Record& record) {
  std::lock_guard lock(lock_);
  record.waiting_ = {};
}

bool Watch::agreement_differs(const Record& record) {
  std::lock_guard lock(lock_);
  return record.agreement_differs_;
}

Watch::Difference Watch::found(Record& record) {
  std::lock_guard lock(lock_);
  return record.differs_;
}

std::uint64_t Watch::lengths_sum(Rank rank, Rank ranks, std::uint32_t sequence, const std::size_t* sent,
                                 const std::size_t* due) {
  std::uint64_t sum = 0;
  for (Rank r = 0; r < ranks; ++r) sum += of_pair(rank, r, sequence, sent[r]) - of_pair(r, rank, sequence, due[r]);
  return sum;
}

void Watch::exchanges(Record& record, std::uint32_t sequence, const std::size_t* sent, const std::size_t* due) {
  assert(sent && due);
  const std::size_t n = record.world_rank_.size();
  record.lengths_sum += lengths_sum(record.rank_, Rank(n), sequence, sent, due);
  std::lock_guard lock(lock_);
  record.exchanged_.sequence = sequence;
  record.exchanged_.sent.assign(sent, sent + n);
  record.exchanged_.due.assign(due, due + n);
}

std::uint64_t Watch::Messages::sum(Rank rank) const {
  std::uint64_t all = 0;
  for (Rank r = 0; r < of_.size(); ++r) all += of_pair(rank, r, 0, sent(r)) - of_pair(r, rank, 0, received(r));
  return all;
}

// In this order: a function may start a thread before it returns.
bool Watch::alone() const { return !completions::to_come() && one_thread(); }

// ---- Ports ----

Watch::Watch(Rank rank) : rank_(rank), left_(kLeftMax) {}

GCCL_Port_spec Watch::spec(const GCCL_Port_spec& of_world) {
  GCCL_Port_spec spec = of_world;
  spec.channels = 1;
  spec.communicator ^= kIdOfPorts;
  spec.connect_timeout_ms = 0;
  return spec;
}

Watch::~Watch() {
  for (auto& [world, link] : links_) {
    Ports::Port& port = ports_->to(world);
    if (link->sending) port.backend->cancel(port.state, &link->outgoing);
    if (link->listening) port.backend->cancel(port.state, &link->incoming);
  }
}

Watch::Link& Watch::link_to(Rank world) {
  const auto found = links_.find(world);
  if (found == links_.end()) {
    auto link = std::make_unique<Link>();
    link->world = world;
    for (GCCL_Transfer* t : {&link->outgoing, &link->incoming}) {
      t->peer = world;
      t->channel = 0;
      t->bytes = sizeof(Letter);
      t->signature = kSignature;
      t->grain = 1;
      t->owner = link.get();
    }
    link->outgoing.data = &link->sent;
    link->incoming.data = &link->received;
    return *links_.emplace(world, std::move(link)).first->second;  // poll() listens
  }
  return *found->second;
}

// Those that may ask this rank, also on other communicators than the one on which it waits: the ranks that each of them
// exchanges notes with, and those that it has had messages with, which may wait for one.
void Watch::expect_notes() {
  for (const auto& r : records_) {
    for (const Peer& p : r->peers_) link_to(r->world_rank_[p.rank]);
    for (Rank other = 0; other < r->world_rank_.size(); ++other)
      if (other != r->rank_ && (r->messages.sent(other) || r->messages.received(other))) link_to(r->world_rank_[other]);
  }
}

void Watch::listen(Link& link) {
  Ports::Port& port = ports_->to(link.world);
  for (int i = 0; i < kPollsPerTurn && !link.listening && !failed_; ++i) {
    if (port.backend->receive(port.state, &link.incoming) == 1) {
      heard(link);
    } else {
      link.listening = true;
      ++port.in_flight;
    }
  }
}

void Watch::send(Rank world, const Letter& letter) {
  Link& link = link_to(world);
  link.outbox.push_back(letter);
  flush(link);
}

void Watch::flush(Link& link) {
  Ports::Port& port = ports_->to(link.world);
  while (!link.sending && !link.outbox.empty() && !failed_) {
    link.sent = link.outbox.front();
    link.outbox.pop_front();
    if (port.backend->send(port.state, &link.outgoing) == 1) continue;
    link.sending = true;
    ++port.in_flight;
  }
}

void Watch::poll() {
  for (Ports::Port& port : ports_->all()) {
    for (int i = 0; i < kPollsPerTurn && port.in_flight > 0 && !failed_; ++i) {
      GCCL_Transfer* done[16];
      const int n = port.backend->poll(port.state, done, 16);
      if (n < 0) failed_ = true;
      if (n <= 0) break;
      assert(std::uint32_t(n) <= port.in_flight);
      port.in_flight -= std::uint32_t(n);
      // Whatever fails below, the port has forgotten them.
      for (int k = 0; k < n; ++k) {
        Link& link = *static_cast<Link*>(done[k]->owner);
        (done[k] == &link.outgoing ? link.sending : link.listening) = false;
      }
      for (int k = 0; k < n; ++k) {
        Link& link = *static_cast<Link*>(done[k]->owner);
        if (done[k] == &link.outgoing) {
          flush(link);
        } else {
          heard(link);
        }
      }
    }
  }
  // Also where so much had come at once that the last poll left some.
  for (auto& [world, link] : links_) listen(*link);
}

// ---- What is said ----

void Watch::note_call(const Record& record, const Peer& peer, std::uint32_t sequence, std::uint8_t also) {
  History::Entry e;
  if (!record.history.find(sequence, &e)) return;
  Note note;
  note.communicator = record.id_;
  note.digest = e.digest;
  note.signature = e.signature;
  note.count = e.count;
  note.sequence = sequence;
  note.peer = e.root;
  note.element_bytes = e.element_bytes;
  note.flags = kOfCall | also;
  send(record.world_rank_[peer.rank], note);
}

void Watch::note_lengths(const Record& record, const Peer& peer) {
  const Exchanged& e = record.exchanged_;
  if (e.sequence == 0) return;
  assert(peer.rank < e.sent.size() && peer.rank < e.due.size());
  Note note;
  note.communicator = record.id_;
  note.sequence = e.sequence;
  note.digest = e.sent[peer.rank];
  note.count = e.due[peer.rank];
  note.flags = kLengths;
  send(record.world_rank_[peer.rank], note);
}

// What this rank is in: there, or else on another communicator.
Watch::Note Watch::state_of(const Record& record, const Peer& reader) const {
  Note note;
  note.communicator = record.id_;
  note.sequence = record.history.last();
  History::Entry e;
  if (record.history.find(note.sequence, &e)) note.digest = e.digest;
  note.flags = alone() ? kAlone : 0;
  const auto describe = [&](const Waiting& w, In in, Rank peer) {
    note.in = in;
    note.signature = w.signature;
    note.peer = peer;
    note.limited = w.limited;
    if (w.blocked) note.flags |= kBlocked;
  };
  note.agreements = begun(record);
  note.sent = record.messages.sent(reader.rank);
  note.received = record.messages.received(reader.rank);
  const auto leaves = [&] { note.flags |= kLeaves; };  // and so neither sends nor receives any more
  if (record.leaving_) {
    note.in = In::finalize;
    leaves();
    return note;
  }
  if (record.waiting_.open()) {
    const Waiting& w = record.waiting_;
    describe(w, w.in, w.peer);
    note.wait = wait_of(record);
    const Purpose purpose = Descriptor::purpose_of(note.signature);
    if (note.in == In::collective && (purpose == Purpose::free || purpose == Purpose::finalize)) leaves();
    return note;
  }
  for (const auto& other : records_) {
    if (!other->waiting_.open()) continue;
    describe(other->waiting_, In::elsewhere, other->world_rank_[other->waiting_.peer]);
    if (other->waiting_.in == In::collective) note.flags |= kCollective;
    note.there = other->waiting_.in;
    note.count = other->id_;
    note.element_bytes = std::uint32_t(other->world_rank_.size());
    note.agreements_there = begun(*other);
    note.wait = wait_of(*other);
    break;
  }
  return note;
}

void Watch::ask(Record& record, Peer& peer, std::int64_t now_ns) {
  peer.asked = true;
  peer.asked_ns = now_ns;
  const std::uint32_t last = record.history.last();
  for (std::uint32_t left = std::min(last - peer.confirmed, kCallsPerQuestion); left-- > 0;)
    note_call(record, peer, last - left);
  note_lengths(record, peer);
  Note note = state_of(record, peer);
  note.flags |= kQuestion;
  send(record.world_rank_[peer.rank], note);
}

// With this rank's call of the same number, so that both find out.
void Watch::answer(Record& record, Peer& peer, const Note& question) {
  if (std::int32_t(record.history.last() - question.sequence) >= 0 && question.sequence > 0)
    note_call(record, peer, question.sequence);
  note_lengths(record, peer);
  Note note = state_of(record, peer);
  note.flags |= kAnswer;
  send(record.world_rank_[peer.rank], note);
}

// ---- What is heard ----

void Watch::heard(Link& link) {
  if (link.incoming.result != GCCL_SUCCESS) {
    failed_ = true;
    return;
  }
  if (const Probe* const probe = std::get_if<Probe>(&link.received)) return heard(*probe);
  const Note note = std::get<Note>(link.received);
  const auto record =
      std::find_if(records_.begin(), records_.end(), [&](const auto& r) { return r->id_ == note.communicator; });
  if (record == records_.end()) {  // left, or not made here yet
    const auto end = left_.begin() + std::ptrdiff_t(std::min(leaves_, kLeftMax));
    const auto left = std::ranges::find(left_.begin(), end, note.communicator, &Left::id);
    if (!(note.flags & kQuestion) || left == end || !finalizing()) return;
    Note answer;
    answer.communicator = note.communicator;
    answer.in = In::finalize;
    answer.sequence = left->calls;
    answer.agreements = left->agreements;
    answer.flags = kAnswer;
    return send(link.world, answer);
  }
  Record& r = **record;
  const auto who = std::find(r.world_rank_.begin(), r.world_rank_.end(), link.world);
  if (who == r.world_rank_.end()) return;
  Peer& peer = peer_of(r, Rank(who - r.world_rank_.begin()));
  if (note.flags & kLengths) return compare_lengths(r, peer, note);
  compare(r, peer, note);
  if (note.flags & kOfCall) {
    if (note.flags & kQuestion) note_call(r, peer, note.sequence);
    return;
  }
  peer.heard_ns = now_ns_;
  peer.state = note;
  compare_left(r, peer);
  if (note.flags & kAnswer) peer.asked = false;
  if (note.flags & kQuestion) answer(r, peer, note);
}

bool Watch::finalizing() const {
  return std::any_of(records_.begin(), records_.end(), [](const auto& r) {
    return r->waiting_.in == In::collective && Descriptor::purpose_of(r->waiting_.signature) == Purpose::finalize;
  });
}

Status Watch::check(Record& record, const Waiting& waiting, std::int64_t now_ns) {
  std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock) return {};
  now_ns_ = now_ns;
  const bool anew = !waiting.same_call(std::exchange(record.waiting_, waiting));
  if (!failed_) {
    poll();
    if (waiting.open() && waiting.peer < record.world_rank_.size() && waiting.peer != record.rank_)
      peer_of(record, waiting.peer);
    for (Peer& p : record.peers_) {
      for (std::size_t i = 0; i < p.ahead.size();) {
        if (std::int32_t(record.history.last() - p.ahead[i].sequence) < 0) {
          ++i;
          continue;
        }
        const Note note = p.ahead[i];
        p.ahead.erase(p.ahead.begin() + std::ptrdiff_t(i));
        compare(record, p, note);
      }
      compare_left(record, p);
      compare_agreement(record, p);
      go_on_narrowing(record, p, anew);
      if (!p.asked && (p.asked_ns == 0 || now_ns - p.asked_ns >= kAskNs)) ask(record, p, now_ns);
    }
    compare_self(record);
    compare_same_process(record, now_ns);
    compare_crossed(record, now_ns);
    seek_circle(record);
  }
  return record.differs_.what;
}

std::string Watch::report(Record& record, std::int64_t now_ns) {
  std::lock_guard lock(lock_);
  std::string text, silent;
  for (const Peer& p : record.peers_) {
    const std::string who = rank_text(p.rank, record.world_rank_);
    if (!p.state || now_ns - p.heard_ns > kFreshNs) {
      silent += (silent.empty() ? "" : ", ") + who;
      continue;
    }
    const Note& n = *p.state;
    const Near near{n.sequence, Rank(record.world_rank_.size())};
    std::string in;
    switch (n.in) {
      case In::collective:
        in = fmt::format("is in {} and waits for {}", text_of_signature(n.signature, near),
                         rank_text(n.peer, record.world_rank_));
        break;
      case In::send:
      case In::recv:
        in = fmt::format("is in a {} {}", n.in == In::send ? "send to" : "recv from",
                         rank_text(n.peer, record.world_rank_));
        break;
      case In::elsewhere: in = fmt::format("is in {}{}", elsewhere_text(n), awaited_text(n, " and waits for")); break;
      case In::finalize: in = "is in Finalize"; break;
      case In::agree:
      case In::shrink:
      case In::grow: in = fmt::format("is in {}", agreement_text(n.in)); break;
      default: in = fmt::format("waits for nothing here; it has begun {} collectives", n.sequence);
    }
    text += fmt::format("; {} {}", who, in);
  }
  if (!silent.empty()) text += fmt::format("; nothing heard from {}, which may be computing", silent);
  return text;
}

}  // namespace gccl
