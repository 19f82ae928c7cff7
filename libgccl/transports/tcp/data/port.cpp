#include "libgccl/transports/tcp/data/port.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <map>
#include <thread>
#include <utility>

#include "libgccl/transports/tcp/connect/first_peers.hpp"

namespace gccl::tcp {
namespace {

using Clock = PendingConnection::Clock;

// How long a peer may take to dial before this rank watches it.
constexpr std::chrono::milliseconds kDialLimit{500};
// And before it is asked to dial: most are about to.
constexpr std::chrono::milliseconds kAskLimit{5};
// Up to as many active links, trying each is cheaper than asking.
constexpr std::size_t kTriedMax = 16;
// A rank that sleeps between its polls makes 500 of them in a second.
constexpr std::uint32_t kPollsPerVanishedCheck = 64, kPollsPerPeerCheck = 8;
// Processors given up while a link connects.
constexpr std::uint32_t kYields = 2000;
// How long a port that closes may take to have its last messages delivered.
constexpr std::chrono::milliseconds kLastWordsMax{1000};
// And before it says so to those who have not taken them: then they acknowledge nothing any more. Where frames are
// checked, only their word says that nothing has to be sent again.
constexpr std::chrono::milliseconds kLeaveLimit{20}, kCheckedLeaveLimit{500};
// What a connection attempt may take beyond its time limit.
constexpr std::chrono::seconds kLastAttempt{1};
// How long after its connection ended a peer's abort may still arrive: of the time in which this process runs, so a
// pause between two polls counts little. A process that was stopped, or got no processor, has had no chance to hear it.
constexpr std::chrono::milliseconds kAbortArrivalMax{200}, kPauseMax{5};
// A rank that aborts dials all before any of them has heard it, and ends no connection before all have. So a rank that
// ends because it has heard an abort has done so after this rank was dialled: once all that had dialled by then, and a
// little later, have been heard, there is no abort. That moment is for ways that differ, on which a connection comes
// later than another one ends, and where an abort goes to some through memory, for its sender's connector. In one
// machine's network over TCP alone there is neither.
constexpr std::chrono::milliseconds kSettles{10}, kSettlesAlone{1};

PortIdentity identity_of(const GCCL_Port_spec& spec) {
  return {spec.communicator, spec.rank, spec.size, spec.channels, {spec.world_rank, spec.world_rank + spec.size}};
}

}  // namespace

Port::Port(Connector* connector, const GCCL_Port_spec& spec)
    : connector_(connector),
      inbox_(std::make_shared<PortInbox>(identity_of(spec))),
      self_(inbox_->identity()),
      peers_(inbox_->peers),
      links_(std::size_t(spec.size) * spec.channels),
      settles_(kSettles),
      waiting_since_(spec.size) {
  inbox_->peers.resize(spec.size);
}

Port::~Port() {
  try {
    if (has_last_words()) say_last_words();
  } catch (...) {  // no memory: what is on its way is delivered without it
  }
  if (!inbox_->aborted && !said_leaving_) links_.clear(), arrivals_.clear();
  connector_->close(inbox_, std::move(links_), std::move(arrivals_));
}

Status Port::open() {
  if (connector_->open(inbox_)) return {};
  return Status::error(fmt::format("tcp: communicator number {} is open already", self_.communicator),
                       GCCL_ERR_INVALID_USAGE);
}

Status Port::connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches) {
  assert(spec.rank == self_.rank && spec.size == self_.size && spec.channels == self_.channels);  // those of open_port
  const auto* at = static_cast<const std::byte*>(addresses);
  std::uint32_t here = 0;  // peers on this machine, in its network
  for (std::uint32_t r = 0; r < self_.size; ++r, at += GCCL_BACKEND_ADDRESS_BYTES) {
    PortAddress peer;
    if (r == self_.rank || !decode(at, &peer) || !connector_->address().reaches(peer)) continue;
    if (peer.world_rank != self_.world_rank[r])
      return Status::error(fmt::format("tcp: the address of rank {} is that of world rank {}, expected {}", r,
                                       peer.world_rank, self_.world_rank[r]),
                           GCCL_ERR_INTERNAL);
    peer.addresses = connector_->address().candidates(peer);
    here += peer.host == connector_->address().host;
    peers_[r] = std::move(peer);
    reaches[r] = 1;
  }
  if (connector_->alone() && here == self_.size - 1) settles_ = kSettlesAlone;
  // Handshakes with other nodes take several round trips, and a firewall may stand between: better now, while the ranks
  // are still meeting. All ports are open, so that nobody waits for another rank's thread.
  for (const LinkPlace& asked : inbox_->now_connected()) dial(asked, connector_->settings().peer_timeout);
  const auto limit = std::chrono::milliseconds(spec.connect_timeout_ms);
  std::vector<const Link*> dialled;
  for (const std::uint32_t r : first_peers(spec)) {
    if (!reaches[r] || !dials(r)) continue;
    auto& link = links_[std::size_t(r) * self_.channels] = make_link(r, 0);
    dial({r, 0}, limit.count() > 0 ? limit : connector_->settings().peer_timeout);
    dialled.push_back(link.get());
  }
  return limit.count() > 0 ? await(dialled, limit) : Status();
}

// Where a machine took the connection and nobody says anything yet, the way is free: the process is slow, or stopped.
Status Port::await(const std::vector<const Link*>& dialled, Clock::duration limit) {
  const auto unreached = [&](const GCCL_Fault& f) {
    if (f.result == GCCL_ERR_SYSTEM) return Status::error(f.text, f.result);  // this rank's own
    return Status::error(fmt::format("rank {} at {} {}", self_.rank, connector_->address().addresses[0].host(), f.text),
                         f.result);
  };
  auto pause = std::chrono::microseconds(20);
  // Of what the start may take a quarter is left for the ranks' words on it.
  const auto until = Clock::now() + limit + std::min<Clock::duration>(kLastAttempt, limit / 6);
  for (;;) {
    const bool last = Clock::now() >= until;  // what has come by then counts, however late this thread is
    if (inbox_->full()) read_inbox();
    if (fault_.result != GCCL_SUCCESS) return unreached(fault_);
    if (!peer_failures_.empty()) return unreached(peer_failures_[0]);
    if (last || std::ranges::all_of(dialled, [](const Link* l) { return l->connected(); })) return {};
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(2000));
  }
}

Link* Port::link_for(GCCL_Transfer* t) {
  assert(t->peer < self_.size && t->channel < self_.channels && !peers_[t->peer].addresses.empty());
  auto& link = links_[std::size_t(t->peer) * self_.channels + t->channel];
  if (!link) {
    link = make_link(t->peer, t->channel);
    if (dials(t->peer)) dial({t->peer, t->channel}, connector_->settings().peer_timeout);
  }
  link->ready = true;
  activate(link.get());
  return link.get();
}

void Port::activate(Link* link) {
  if (std::exchange(link->active, true)) return;
  active_.push_back(link);
  if (link->connected()) return;
  ++unconnected_;
  yields_left_ = kYields;
  if (dials(link->peer())) {
    for (const GCCL_Fault& t : peer_failures_)
      if (t.peer == link->peer() && fault_.result == GCCL_SUCCESS) fault_ = t;
    return;
  }
  link->active_since = Clock::now();
  Clock::time_point& since = waiting_since_[link->peer()];
  if (since == Clock::time_point()) since = link->active_since;
}

void Port::dial(LinkPlace link, Clock::duration time_limit) {
  if (inbox_->claim(link.peer, link.channel))
    connector_->dial(Dial::link(inbox_, link.peer, link.channel, connector_->settings(), time_limit));
}

// Where a peer should dial and does not: it dials once it wants something of the link, so one with something to send to
// it asks. And is it there? The watch is a connection of its own that ends when the peer does.
void Port::check_unconnected() {
  // The connector's thread may share this processor.
  if (yields_left_ > 0) {
    --yields_left_;
    sched_yield();
  }
  if (++polls_unconnected_ % kPollsPerPeerCheck != 0) return;
  const Clock::time_point now = Clock::now();
  const auto limit = connector_->settings().peer_timeout;
  std::vector<Dial::Target> targets;
  for (Link* link : active_) {
    const std::uint32_t peer = link->peer();
    if (link->connected() || dials(peer)) continue;
    if (!link->asked && link->sends() && now - link->active_since > kAskLimit) {
      targets.emplace_back(ConnectionRequest::Kind::ask, inbox_, peer, limit).request.channel = link->channel();
      link->asked = true;
    }
    Clock::time_point& since = waiting_since_[peer];
    if (since == Clock::time_point() || since == Clock::time_point::max() || now - since < kDialLimit) continue;
    since = Clock::time_point::max();
    targets.emplace_back(ConnectionRequest::Kind::watch, inbox_, peer, limit);
  }
  if (!targets.empty()) connector_->dial(std::move(targets));
}

// The kernel takes a quarter of an hour to give up data that nobody acknowledges.
void Port::check_vanished() {
  const Clock::time_point now = Clock::now();
  if (now < next_check_) return;
  const auto limit = connector_->settings().peer_timeout;
  next_check_ = now + limit / 16;
  for (Link* link : active_) {
    if (!link->vanished(connector_->settings())) continue;
    const std::string problem = fmt::format("its machine has not answered for {} s", limit / std::chrono::seconds(1));
    if (!connector_->settings().mends()) return fail(*link, problem);
    link->break_off_vanished(connector_->settings(), problem, &done_);
    link->ready = true;
    mend(link);
  }
}

bool Port::send(GCCL_Transfer* t) {
  Link* const link = link_for(t);
  link->post_send(t);
  if (fault_.result != GCCL_SUCCESS || suspected_fault_.result != GCCL_SUCCESS || !link->connected() || inbox_->full())
    return false;
  std::string problem;
  if (!link->advance_sends(&done_, &problem)) {
    fail(*link, problem);
  } else if (link->broken()) {
    mend(link);
  }
  return done_.take_only(t);
}

void Port::receive(GCCL_Transfer* t) { link_for(t)->post_receive(t); }

bool Port::advance(Link* link) {
  std::string problem;
  if (link->advance(&done_, &staging_, &problem)) {
    broken_ += link->mending();
    if (link->broken()) mend(link);
    return true;
  }
  fail(*link, problem);
  return false;
}

std::unique_ptr<Link> Port::make_link(std::uint32_t peer, std::uint32_t channel) const {
  return std::make_unique<Link>(peer, channel, connector_->settings().mends(), connector_->settings().checks);
}

// The side that dials dials again; the other one asks it to, as it may not know.
void Port::mend(Link* link) {
  std::vector<Dial::Target> targets;
  for (std::uint32_t i = 0; i < link->streams().size(); ++i) {
    Stream* const s = link->streams()[i].get();
    if (!s || s->state != Stream::State::broken) continue;
    if (std::exchange(s->asked, true)) continue;
    const StreamPlace place{{link->peer(), link->channel()}, i};
    const auto streams = std::uint32_t(link->streams().size());
    if (!dials(link->peer())) {
      targets.push_back(Dial::ask_again(inbox_, place, streams, s->connection, s->remote, connector_->settings()));
    } else if (inbox_->claim_again(place, s->connection)) {
      targets.push_back(Dial::again(inbox_, place, streams, s->remote, connector_->settings()));
    }
  }
  if (!targets.empty()) connector_->dial(std::move(targets));
}

// A new connection on which the peer does not say yet where it goes on is one: it computes, or is stopped, and its
// machine answers.
void Port::check_broken() {
  const std::int64_t now = now_ns(), limit = connector_->settings().link_lost / std::chrono::nanoseconds(1);
  for (const Link* link : active_)
    for (const auto& s : link->streams())
      if (s && s->state == Stream::State::broken && now - s->broken_since_ns > limit)
        return fail(*link, s->stuck ? fmt::format("{} for {} ms", s->problem, limit / kNsPerMs)
                                    : fmt::format("{}, and for {} ms no new connection", s->problem, limit / kNsPerMs));
}

bool Port::has_last_words() const {
  return connector_->settings().mends() && !inbox_->aborted && fault_.result == GCCL_SUCCESS;
}

void Port::take_leave() noexcept {
  if (!has_last_words()) return;
  try {
    for (const auto& link : links_)
      if (link && link->connected()) link->take_leave(&done_), activate(link.get());
  } catch (...) {  // no memory: the peers wait a little
  }
}

// What was sent may still have to be sent again: until the peers have found it undamaged, or it is on their machines,
// or they know of nothing more.
void Port::say_last_words() {
  const bool checks = connector_->settings().checks && !alone_;
  const Clock::duration limit = std::min<Clock::duration>(connector_->settings().link_lost, kLastWordsMax),
                        leaves_after = std::min<Clock::duration>(checks ? kCheckedLeaveLimit : kLeaveLimit, limit / 2);
  const Clock::time_point began = Clock::now();
  take_leave();
  auto pause = std::chrono::microseconds(20);
  bool said = false;
  const auto on_its_way = [&](const auto& l) { return l && l->connected() && !l->delivered(checks && !said, &done_); };
  bool last = false;  // what has come by the end counts, however late this thread is
  while (!last && fault_.result == GCCL_SUCCESS && suspected_fault_.result == GCCL_SUCCESS &&
         std::ranges::none_of(links_, [](const auto& l) { return l && l->transfers(); }) &&
         std::ranges::count_if(links_, on_its_way) > 0) {
    last = Clock::now() >= began + limit;
    // Where it takes longer than a moment, the kernel delivers what is left, unless the peer writes anything meanwhile.
    if (Clock::now() > began + leaves_after && !std::exchange(said, true)) say_leaving();
    for (const auto& link : links_)
      if (link && link->connected()) activate(link.get());
    GCCL_Transfer* nobody[1];
    poll(nobody, 0);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
}

void Port::say_leaving() {
  std::map<std::uint32_t, SocketAddress> at;
  for (const auto& link : links_)
    if (link && link->connected() && !link->delivered(false, &done_)) at.emplace(link->peer(), link->remote());
  std::vector<Dial::Target> targets;
  for (const auto& [peer, address] : at) targets.push_back(Dial::leave(inbox_, peer, address, connector_->settings()));
  said_leaving_ = !targets.empty();
  if (said_leaving_) connector_->dial(std::move(targets));
}

LinkCounts Port::link_counts() const {
  LinkCounts sum;
  for (const auto& l : links_)
    if (l) sum += l->counts();
  return sum;
}

void Port::take_arrivals(fault::Arrivals* by_peer) {
  for (const auto& l : links_)
    if (l) by_peer[l->peer()] += l->take_arrivals();
}

// Edges: an event says that something has changed since a link's sockets had no more to give or take.
void Port::find_ready() {
  if (!epoll_) epoll_ = not_for_children([] { return epoll_create1(EPOLL_CLOEXEC); });
  // What epoll does not report (descriptors or watches are short) is tried as ever.
  for (Link* link : active_)
    if (!epoll_ || !link->register_with(epoll_.get())) link->ready = true;
  if (!epoll_) return;
  epoll_event events[64];
  const int n = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < n; ++i) static_cast<Link*>(events[i].data.ptr)->ready = true;
}

int Port::poll(GCCL_Transfer** done, int max) {
  if (inbox_->full()) read_inbox();
  if (suspected_fault_.result != GCCL_SUCCESS) {
    const Clock::time_point now = Clock::now();
    listened_ += std::min<Clock::duration>(now - last_listened_, kPauseMax);
    last_listened_ = now;
    if (fault_.result == GCCL_SUCCESS &&
        (listened_ > kAbortArrivalMax || connector_->read_all_dialled(suspected_at_ + settles_))) {
      if (inbox_->full()) read_inbox();
      if (fault_.result == GCCL_SUCCESS) fault_ = suspected_fault_;
    }
  } else if (fault_.result == GCCL_SUCCESS) {
    const bool many = active_.size() > kTriedMax;
    if (many) find_ready();
    broken_ = 0;
    for (std::size_t i = 0; i < active_.size();) {
      Link* const link = active_[i];
      if (many && !link->ready) {
        ++i;
        continue;
      }
      const std::uint64_t before = link->moved_bytes(), taken_before = many ? link->taken_from_ahead() : 0;
      if (!advance(link)) break;
      const std::uint64_t moved = link->moved_bytes() - before;
      moved_bytes_ += moved;
      if (many && moved == 0 && link->taken_from_ahead() == taken_before && !link->timed()) link->ready = false;
      if (link->idle()) {
        link->active = false;
        active_[i] = active_.back();
        active_.pop_back();
      } else {
        ++i;
      }
    }
    if (unconnected_ > 0) check_unconnected();
    if (broken_ > 0) check_broken();
    if (++polls_ % kPollsPerVanishedCheck == 0) check_vanished();
  }
  const int n = done_.take(done, max);
  return n == 0 && fault_.result != GCCL_SUCCESS ? -1 : n;
}

void Port::read_inbox() {
  InboxContents contents = inbox_->take();
  // Where memory is short, a peer hears why before its connection ends.
  arrivals_.splice(arrivals_.end(), contents.arrivals);
  while (!arrivals_.empty()) {
    Arrival& first = arrivals_.front();
    auto& link = links_[std::size_t(first.peer) * self_.channels + first.channel];
    if (!link) link = make_link(first.peer, first.channel);
    const bool was_connected = link->connected();
    const bool fits = link->connect(first.connection, std::move(first.fd), connector_->settings(), &done_);
    const Arrival a = std::move(first);
    arrivals_.pop_front();
    if (!fits) {
      char text[GCCL_BACKEND_TEXT_BYTES];
      std::snprintf(text, sizeof text, "tcp: rank %u connected channel %u, stream %u twice: dropped", a.peer, a.channel,
                    a.connection.stream);
      if (const auto log = connector_->environment().log) log(1, text);
    }
    if (link->active && !was_connected && link->connected()) --unconnected_;
    // Though nobody here may want anything of it: the peer goes on once this side has said where.
    if (connector_->settings().mends() && link->connected()) {
      link->ready = true;
      activate(link.get());
    }
  }
  for (const std::uint32_t peer : contents.leaving)
    for (std::uint32_t c = 0; c < self_.channels; ++c)
      if (auto& link = links_[std::size_t(peer) * self_.channels + c]) link->peer_leaves();
  // A peer that has closed cleanly owes nothing on links that are connected, or that nobody uses.
  for (const GCCL_Fault& t : contents.peer_failures) {
    const auto broken = std::ranges::find_if(active_, [&](Link* l) { return l->peer() == t.peer && l->broken(); });
    if (std::ranges::any_of(active_, [&](const Link* l) { return l->peer() == t.peer && !l->connected(); })) {
      suspect(t);
    } else if (broken != active_.end()) {
      fail(**broken, (*broken)->problem());
    } else if (dials(t.peer)) {
      peer_failures_.push_back(t);
    } else {
      waiting_since_[t.peer] = {};
    }
  }
  if (contents.fault.result != GCCL_SUCCESS && fault_.result == GCCL_SUCCESS) fault_ = contents.fault;
}

void Port::suspect(const GCCL_Fault& fault) {
  assert(is_error(fault.result) && fault.peer < self_.size);
  if (suspected_fault_.result != GCCL_SUCCESS) return;
  suspected_fault_ = fault;
  suspected_at_ = last_listened_ = Clock::now();
}

void Port::fail(const Link& link, const std::string& problem) {
  const SocketAddress at = link.last_remote().valid() ? link.last_remote() : peers_[link.peer()].addresses[0];
  GCCL_Fault f{.result = GCCL_ERR_PEER_LOST, .peer = link.peer(), .text = {}};
  std::snprintf(f.text, sizeof f.text,
                "%.70s while %s, at %s (world rank %u); it ended or left the communicator, or the network failed",
                problem.c_str(), link.doing().c_str(), at.host().c_str(), self_.world_rank[link.peer()]);
  suspect(f);
}

void Port::cancel(GCCL_Transfer* t) {
  done_.remove(t);
  if (const auto& link = links_[std::size_t(t->peer) * self_.channels + t->channel]) link->cancel(t);
}

void Port::abort(const GCCL_Fault& fault) const noexcept {
  // The rank that it came from has sent it to all, unless it was killed meanwhile. Ranks that go on without the lost
  // one wait for all that have not heard of it: so where they may go on, each passes it on to some.
  const bool passes_on = inbox_->announced();
  if (passes_on && fault.result != GCCL_ERR_PEER_LOST && fault.result != GCCL_ERR_REVOKED) return;
  inbox_->aborted = true;
  connector_->abort(inbox_, fault, passes_on);
}

}  // namespace gccl::tcp
