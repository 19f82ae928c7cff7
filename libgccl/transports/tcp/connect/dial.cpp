#include "libgccl/transports/tcp/connect/dial.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "libgccl/base/shortened.hpp"

namespace gccl::tcp {
namespace {

// A refusal may be a process that is not there yet, or one on its way out: worth a second and a third look, no more.
constexpr unsigned kRounds = 3;
constexpr std::chrono::milliseconds kPause{200};
// A listener that many strangers dial drops whom it can: then it is tried often.
constexpr std::chrono::milliseconds kShortPause{20};
// While memory is short.
constexpr std::chrono::milliseconds kMemoryPause{10};
constexpr std::chrono::seconds kSilenceMax{60};
// Where a connection broke the next one is dialled at once, and then after pauses that double.
constexpr std::chrono::milliseconds kAgainPause{1}, kAgainPauseMax{100};
// Where the peer may have other addresses that lead to it, or the way there may have been mended since, a connection to
// come about has this long at first, as in RFC 8305, and twice as long in each further round, as a way may be long.
// Dialled again, never longer than the kernel takes to repeat its first packet.
constexpr std::chrono::milliseconds kFirstAttempt{250}, kAgainAttemptMax{1000};
// A peer that has heard that this rank leaves writes nothing more, but for what it was writing just then.
constexpr std::chrono::milliseconds kLinger{500};
// Where the time limit has passed, other addresses still have this long.
constexpr std::chrono::milliseconds kAttemptMin{200};

}  // namespace

Dial::Target::Target(ConnectionRequest::Kind kind, std::shared_ptr<PortInbox> from, std::uint32_t to,
                     Clock::duration time_limit)
    : inbox(std::move(from)), addresses(inbox->peers[to].addresses), time_limit(time_limit) {
  request.kind = kind;
  request.communicator = inbox->identity().communicator;
  request.nonce = inbox->peers[to].nonce;
  request.from = inbox->identity().rank;
  request.to = to;
  for_peer = kind == ConnectionRequest::Kind::abort || kind == ConnectionRequest::Kind::ask;
}

std::vector<Dial::Target> Dial::link(const std::shared_ptr<PortInbox>& from, std::uint32_t to, std::uint32_t channel,
                                     const Settings& settings, std::optional<Clock::duration> time_limit) {
  std::vector<Target> targets;
  for (unsigned i = 0; i < settings.streams; ++i) {
    ConnectionRequest& h =
        targets.emplace_back(ConnectionRequest::Kind::stream, from, to, time_limit.value_or(settings.peer_timeout))
            .request;
    h.channel = channel;
    h.stream = i;
    h.streams = settings.streams;
  }
  return targets;
}

namespace {

Dial::Target to_same_peer(ConnectionRequest::Kind kind, const std::shared_ptr<PortInbox>& from,
                          const StreamPlace& place, std::uint32_t streams, const SocketAddress& remote,
                          const Settings& settings) {
  Dial::Target t(kind, from, place.link.peer, settings.link_lost);
  t.again = t.for_peer = true;
  // Of its addresses the one where it was, if that is known: others may lead nowhere.
  const auto elsewhere = [host = remote.with_port(0)](const SocketAddress& a) { return a.with_port(0) != host; };
  if (!std::ranges::all_of(t.addresses, elsewhere)) std::erase_if(t.addresses, elsewhere);
  t.request.channel = place.link.channel;
  t.request.stream = place.stream;
  t.request.streams = streams;
  return t;
}

}  // namespace

Dial::Target Dial::again(const std::shared_ptr<PortInbox>& from, const StreamPlace& place, std::uint32_t streams,
                         const SocketAddress& remote, const Settings& settings) {
  return to_same_peer(ConnectionRequest::Kind::stream, from, place, streams, remote, settings);
}

Dial::Target Dial::ask_again(const std::shared_ptr<PortInbox>& from, const StreamPlace& place, std::uint32_t streams,
                             std::uint64_t broken, const SocketAddress& remote, const Settings& settings) {
  Target t = to_same_peer(ConnectionRequest::Kind::ask, from, place, streams, remote, settings);
  t.request.connection = broken;
  return t;
}

Dial::Target Dial::leave(const std::shared_ptr<PortInbox>& from, std::uint32_t to, const SocketAddress& remote,
                         const Settings& settings) {
  return to_same_peer(ConnectionRequest::Kind::leave, from, {{to, 0}, 0}, 1, remote, settings);
}

StreamPlace Dial::place() const {
  const ConnectionRequest& r = target_.request;
  return {{r.to, r.channel}, r.stream};
}

Dial::Dial(Target target, const std::string* secret, const Settings* settings, Reserve* reserve, Answers* answers)
    : secret_(secret),
      settings_(settings),
      reserve_(reserve),
      answers_(answers),
      limit_(std::min<Clock::duration>(kPendingLimit, settings->peer_timeout / 2)),
      attempt_(std::min<Clock::duration>(kFirstAttempt, limit_)),
      target_(std::move(target)),
      handshake_(Handshake::dial(*secret, encode(target_.request))) {
  assert(target_.inbox && !target_.addresses.empty());
  assert(target_.request.to < target_.inbox->identity().size);
  if (const auto known = answers_->find(target_.request.nonce); known != answers_->end())
    std::stable_partition(target_.addresses.begin(), target_.addresses.end(),
                          [&](const SocketAddress& a) { return a == known->second; });
  inbox_ = target_.inbox;
  outlives_port_ = target_.request.kind == ConnectionRequest::Kind::abort && !target_.ends_with_port;
  deadline_ = begun_;
}

// A peer that was there and is gone is refused by its machine; everything else may pass. A connection that breaks as
// soon as it is there is no refusal either, where those that break later are mended. That there is no way now (a cable
// that is out) is nobody's word on the peer.
Dial::Failure Dial::refusal(int error) const {
  switch (error) {
    case ECONNREFUSED: return Failure::refused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN: return target_.again ? Failure::unanswered : Failure::cut_off;
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE: return target_.again || settings_->mends() ? Failure::unanswered : Failure::refused;
    case 0: return Failure::no_way;
    default: return target_.again ? Failure::unanswered : Failure::no_way;
  }
}

// What is none of the protocol may have been on its way from the peer that was there.
bool Dial::may_be_damaged() const { return target_.again && settings_->checks; }

PendingConnection::Next Dial::dial_next() {
  const SocketAddress& to = target_.addresses[address_];
  const bool aborts = target_.request.kind == ConnectionRequest::Kind::abort;
  // A connection that stays may not have the last descriptor.
  int error = 0;
  Status s = aborts || reserve_->hold() ? dial(to, &fd_, &error) : system_error("cannot make a socket", EMFILE);
  if (aborts && s.code() == GCCL_ERR_SYSTEM) reserve_->borrow([&] { return (s = dial(to, &fd_, &error)).ok(); });
  if (s.code() == GCCL_ERR_SYSTEM) {
    ++short_of_;
    return failed_here(s.text());
  }
  if (!s.ok()) return failed(refusal(error), s.text());
  if (target_.request.kind == ConnectionRequest::Kind::stream)
    target_.request.connection = inbox_->begin_attempt(place(), &target_.request.fresh);
  handshake_ = Handshake::dial(*secret_, encode(target_.request));
  stage_ = Stage::connecting;
  events_ = EPOLLOUT;
  const Clock::time_point now = Clock::now();
  const Clock::duration limit = target_.again || target_.addresses.size() > 1 ? attempt_ : limit_;
  deadline_ = std::max(std::min(now + limit, begun_ + target_.time_limit), now + kAttemptMin);
  return Next::go_on;
}

// Which says nothing of the peer.
PendingConnection::Next Dial::failed_here(const std::string& why) {
  return failed(target_.for_peer ? Failure::no_descriptor : Failure::no_way, why);
}

PendingConnection::Next Dial::failed(Failure how, const std::string& why) {
  reserve_->take_back([this] { end_connection(); });
  refused_ |= how == Failure::refused;
  cut_off_ |= how == Failure::cut_off;
  unanswered_ |= how == Failure::unanswered;
  silent_ |= how == Failure::silent;
  no_descriptor_ |= how == Failure::no_descriptor;
  left_ |= how == Failure::left;
  if (!failures_.empty()) failures_ += "; ";
  failures_ += why;
  if (++address_ == target_.addresses.size()) return end_round();
  stage_ = Stage::pausing;
  deadline_ = Clock::now();
  return Next::go_on;
}

// All addresses have been tried. A peer that refuses has ended, also where another of its addresses is of a network
// that this machine has no part in. One whose machine does not answer may be cut off for a moment, as this machine may
// be, or strangers keep its listener busy. One that is silent is stopped (by a debugger, or with its machine): it
// lives, and the caller's time limit alone decides how long it is waited for.
PendingConnection::Next Dial::end_round() {
  // Where what is sent may be damaged, that is tried again like a refusal.
  if (unauthenticated_ && !settings_->checks) return give_up(GCCL_ERR_AUTHENTICATION, failures_);
  const int given_up = unauthenticated_ ? GCCL_ERR_AUTHENTICATION : all_short() ? GCCL_ERR_SYSTEM : GCCL_ERR_PEER_LOST;
  const bool in_time = Clock::now() - begun_ < target_.time_limit;
  if (target_.again) {
    if (left_ || !in_time || !(unanswered_ || silent_ || no_descriptor_ || unauthenticated_))
      return give_up(given_up, failures_);
    pause_again_ = std::clamp<Clock::duration>(2 * pause_again_, kAgainPause, kAgainPauseMax);
    return next_round(pause_again_);
  }
  const bool aborts = target_.request.kind == ConnectionRequest::Kind::abort;
  const bool cut_off = cut_off_ && !refused_ && !left_;
  Clock::duration pause = kPause;
  if (no_descriptor_ && in_time) {
    pause = aborts ? kShortPause : kPause;
  } else if (silent_ && (in_time || !aborts)) {
    silence_ = std::min<Clock::duration>(2 * silence_, kSilenceMax);
  } else if (unanswered_ && in_time) {
    pause = kShortPause;
  } else if (cut_off && in_time) {
    pause = kPause;  // to try takes no time here
  } else if (silent_ || unanswered_ || cut_off || no_descriptor_ || aborts || ++refusals_ == kRounds) {
    return give_up(given_up, failures_);
  }
  return next_round(pause);
}

PendingConnection::Next Dial::next_round(Clock::duration pause) {
  refused_ = cut_off_ = unanswered_ = silent_ = no_descriptor_ = left_ = unauthenticated_ = failed_here_ = false;
  short_of_ = 0;
  failures_.clear();
  address_ = 0;
  attempt_ = std::min<Clock::duration>(std::max<Clock::duration>(2 * attempt_, kFirstAttempt),
                                       target_.again ? std::min<Clock::duration>(limit_, kAgainAttemptMax) : limit_);
  stage_ = Stage::pausing;
  deadline_ = Clock::now() + pause;
  return Next::go_on;
}

void Dial::dropped() { dropped(target_); }

// What the peer says before it hears that this rank leaves would be answered with a reset.
bool Dial::outlives_links(std::vector<std::unique_ptr<Link>>* links) {
  if (target_.request.kind != ConnectionRequest::Kind::leave) return false;
  try {
    for (auto& link : *links)
      if (link && link->peer() == target_.request.to) links_.push_back(std::move(link));
  } catch (const std::bad_alloc&) {  // they end now
  }
  return true;
}

void Dial::dropped(const Target& target) {
  report(target, GCCL_ERR_PEER_LOST, "this process is ending, and makes no connections any more");
}

PendingConnection::Next Dial::give_up(int result, const std::string& why) {
  if (target_.request.kind == ConnectionRequest::Kind::stream) inbox_->end_attempts(place(), false);
  report(target_, result, why.c_str(), !all_short() && !no_descriptor_);
  return Next::over;
}

PendingConnection::Next Dial::starved() noexcept {
  if (target_.request.kind == ConnectionRequest::Kind::abort) {  // which has to be heard
    reserve_->take_back([this] { end_connection(); });
    (void)next_round(kMemoryPause);
    return Next::go_on;
  }
  starved(target_.request.kind, *inbox_);
  return target_.request.kind == ConnectionRequest::Kind::stream && fd_ ? hold() : Next::over;
}

void Dial::starved(ConnectionRequest::Kind kind, PortInbox& from) noexcept {
  if (kind != ConnectionRequest::Kind::leave) from.put_out_of_memory();  // of that nobody waits for an answer
}

void Dial::report(const Target& target, int result, const char* why, bool advises) noexcept {
  // Of these nobody waits for an answer.
  if (target.request.kind == ConnectionRequest::Kind::abort || target.request.kind == ConnectionRequest::Kind::leave)
    return;
  GCCL_Fault fault{};
  fault.result = result;
  fault.peer = target.request.to;
  const char* const advice = !advises                            ? ""
                             : result == GCCL_ERR_AUTHENTICATION ? "; do both have the same GCCL_SECRET?"
                             : target.inbox->peers[fault.peer].left_out > 0 && !target.again
                                 ? "; it has more addresses: set GCCL_ADDRESS there to a shared network's"
                                 : "; has its process ended, or does a firewall stand between?";
  char short_why[111];  // so that the advice finds room
  put_shortened(short_why, why);
  // Of a lost peer every rank says itself what that was about.
  char who[24] = "";
  if (result == GCCL_ERR_SYSTEM) std::snprintf(who, sizeof who, "rank %u ", target.inbox->identity().rank);
  std::snprintf(fault.text, sizeof fault.text, "%scannot reach rank %u (world rank %u): %s%s", who, fault.peer,
                target.inbox->identity().world_rank[fault.peer], short_why, advice);
  if (result == GCCL_ERR_AUTHENTICATION) return target.inbox->put(fault, false);
  try {
    target.inbox->put_peer_failure(fault);
  } catch (const std::bad_alloc&) {
    target.inbox->put_out_of_memory();
  }
}

PendingConnection::Next Dial::shake() {
  const std::string where = target_.addresses[address_].text();
  switch (handshake_.advance(fd_.get())) {
    case Handshake::State::wants_read: events_ = EPOLLIN; return Next::go_on;
    case Handshake::State::wants_write: events_ = EPOLLOUT; return Next::go_on;
    case Handshake::State::failed:
      failed_here_ |= handshake_.failed_here();
      if (handshake_.failed_here()) return failed_here(fmt::format("{}: {}", where, handshake_.error()));
      unauthenticated_ |= handshake_.unauthenticated();
      return failed(handshake_.disconnected() || may_be_damaged() ? Failure::unanswered : Failure::refused,
                    fmt::format("{}: {}", where, handshake_.error()));
    case Handshake::State::done: break;
  }
  stage_ = Stage::awaiting_reply;
  events_ = EPOLLIN;
  return Next::go_on;
}

PendingConnection::Next Dial::ready() {
  const SocketAddress& to = target_.addresses[address_];
  int error = 0;
  switch (stage_) {
    case Stage::pausing:
    case Stage::lingering: return Next::go_on;
    case Stage::connecting:
      if (const Status s = dialled(fd_.get(), to, &error); !s.ok()) return failed(refusal(error), s.text());
      keep_alive(fd_.get(), *settings_);
      stage_ = Stage::handshaking;
      deadline_ = Clock::now() + silence_;
      if (target_.again) deadline_ = std::min(deadline_, begun_ + target_.time_limit);
      return shake();
    case Stage::handshaking: return shake();
    case Stage::awaiting_reply: {
      std::byte answer{};
      const ssize_t n = recv(fd_.get(), &answer, 1, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Next::go_on;
      if (n == 1 && answer == kAccepted) return accepted();
      if (n == 1 && answer == kNoDescriptor)
        return failed(Failure::no_descriptor,
                      fmt::format("{}: no descriptor is left there (see ulimit -n)", to.text()));
      const bool broke = n == 1 ? may_be_damaged() : settings_->mends();
      return failed(
          n == 1 && answer == kNotHere ? Failure::left
          : broke                      ? Failure::unanswered
                                       : Failure::refused,
          fmt::format("{}: {}", to.text(),
                      n < 0 ? std::generic_category().message(errno) : "it has left the communicator, or is another"));
    }
    case Stage::watching: {
      // Nothing is ever said on this one: it has ended.
      std::byte answer{};
      const ssize_t n = recv(fd_.get(), &answer, 1, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Next::go_on;
      if (settings_->mends() && !target_.again) return watch_again();
      return give_up(
          GCCL_ERR_PEER_LOST,
          fmt::format("{}: {}", to.text(), n < 0 ? std::generic_category().message(errno) : "connection closed"));
    }
  }
  return Next::over;
}

PendingConnection::Next Dial::accepted() {
  const ConnectionRequest& h = target_.request;
  if (target_.addresses.size() > 1) try {
      answers_->insert_or_assign(h.nonce, target_.addresses[address_]);
    } catch (const std::bad_alloc&) {  // the next one takes longer
    }
  switch (h.kind) {
    case ConnectionRequest::Kind::abort:
    case ConnectionRequest::Kind::ask: return Next::over;
    case ConnectionRequest::Kind::leave:
      if (links_.empty()) return Next::over;
      end_connection();
      stage_ = Stage::lingering;
      deadline_ = Clock::now() + kLinger;
      return Next::go_on;
    case ConnectionRequest::Kind::watch:
      target_.again = false;
      set_up(fd_.get(), *settings_);
      stage_ = Stage::watching;
      deadline_ = Clock::time_point::max();
      return Next::go_on;
    case ConnectionRequest::Kind::stream: break;
  }
  set_up(fd_.get(), *settings_);
  inbox_->end_attempts(place(), true);
  arrive(h.to, h.channel, {h.stream, h.streams, h.connection, h.fresh});
  return Next::over;
}

// Its end may be that of the connection alone.
PendingConnection::Next Dial::watch_again() {
  end_connection();
  target_.again = true;
  target_.time_limit = settings_->link_lost;
  begun_ = Clock::now();
  pause_again_ = attempt_ = {};
  return next_round({});
}

PendingConnection::Next Dial::expired() {
  const std::string where = target_.addresses[address_].text();
  switch (stage_) {
    case Stage::pausing: return dial_next();
    case Stage::connecting: return failed(Failure::unanswered, fmt::format("{}: no answer", where));
    case Stage::lingering: return Next::over;
    default: break;
  }
  if (vanished(fd_.get(), *settings_)) return failed(Failure::unanswered, fmt::format("{}: no answer any more", where));
  // Another address may lead to the peer, and this one to somebody else. Where there is none, the connection is kept:
  // dialling again would fill the listener's queue.
  if (target_.again || target_.addresses.size() > 1 || target_.request.kind == ConnectionRequest::Kind::abort)
    return failed(Failure::silent, fmt::format("{}: connected, but it says nothing", where));
  deadline_ = Clock::now() + limit_;
  return Next::go_on;
}

}  // namespace gccl::tcp
