#include "libgccl/transports/tcp/data/link.hpp"

#include <fmt/core.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <system_error>

namespace gccl::tcp {
namespace {

constexpr std::uint64_t kCopiedAtOnceMax = 64 << 10;
constexpr std::int64_t kStillNs = 200'000;
// A peer that leaves ends all streams. So long it may take to do so, or the kernels to repeat what is lost on the way:
// after 0.2, 0.4 and 0.8 s.
constexpr std::int64_t kEndsNs = 2'000'000'000;
// Bytes sent between two looks at what the peer acknowledges, where there is no other reason to read.
constexpr std::uint64_t kListenStep = 128 << 10;
// And from so many on, also through messages that are not received yet.
constexpr std::uint64_t kListenMin = 4 << 20;

}  // namespace

bool Link::connect(const Connection& c, Fd&& fd, const Settings& settings, Completions* done) {
  assert(fd);
  if (streams_.empty()) streams_.resize(c.streams);
  if (c.stream >= streams_.size() || streams_.size() != c.streams) return false;
  auto& s = streams_[c.stream];
  if (s && (c.number <= s->connection || (!mends_ && (s->moved_bytes > 0 || s->sending)))) return false;
  if (!s || !mends_) s = std::make_unique<Stream>(mends_, checks_);
  if (mends_) {
    if (s->fd) outgoing_.break_off(s.get(), "", done);
    if (s->connection > 0 && !c.fresh) ++counts_.reconnects;
    if (checks_) incoming_.go_back(s.get());
    if (!s->connect(std::move(fd), c.number, c.fresh)) return false;
    s->deaf = peer_leaves_;  // which is more than the end of a connection
  } else {
    s->fd = std::move(fd);
    s->connection = c.number;
    s->remote = SocketAddress::remote_end(s->fd.get()).with_port(0);
    ended_ = std::ranges::any_of(streams_, [](const auto& one) { return one && one->ended; });
    still_since_ns_ = 0;
  }
  const bool always = settings.zero_copy == Settings::ZeroCopyUse::always;
  // Over loopback the kernel copies all the same, later and with more work.
  if (always || (settings.zero_copy == Settings::ZeroCopyUse::automatic && !stays_on_host(s->fd.get())))
    s->zero_copy.enable(s->fd.get(), always);
  if (settings.watches) s->waits.watch(s->fd.get());
  registered_ = false;
  return true;
}

bool Link::advance(Completions* done, Staging* staging, std::string* problem) {
  for (auto& s : streams_)
    if (s) s->may_read = kVisitBytes;
  if (mends_) return advance_mended(done, staging, problem);
  if (ended_) return advance_ended(done, staging, problem);
  return advance_sends(done, problem) && advance_receives(done, staging, problem);
}

// Who has lost one stream and not left may send on over the others, or never again.
bool Link::advance_ended(Completions* done, Staging* staging, std::string* problem) {
  const std::uint64_t before = moved_bytes() + taken_from_ahead();
  if (!advance_sends(done, problem) || !advance_receives(done, staging, problem)) return false;
  const bool over_first = !incoming_.empty() && !incoming_.over_several() && !(streams_[0] && streams_[0]->ended);
  if (moved_bytes() + taken_from_ahead() != before || incoming_.empty() || over_first) {
    still_since_ns_ = 0;
    return true;
  }
  const std::int64_t now = now_ns();
  if (still_since_ns_ == 0) still_since_ns_ = now;
  if (now - still_since_ns_ <= kEndsNs) return true;
  *problem = kClosed;
  return false;
}

bool Link::advance_mended(Completions* done, Staging* staging, std::string* problem) {
  const std::uint64_t before = moved_bytes(), taken_before = ended_ ? taken_from_ahead() : 0;
  const bool had_ended = ended_;
  if (!resume(done, problem)) return false;
  // At once, not with the next poll: a thread that waits may pause before it, and the peer waits, too.
  for (bool more = true; more;) {
    if (!advance_sends(done, problem) || !advance_receives(done, staging, problem)) return false;
    more =
        connected() && std::ranges::any_of(streams_, [&](const auto& s) {
          return s && s->state == Stream::State::open && s->may_read > 0 && !s->sent.behind() && s->header_left == 0 &&
                 !s->sending &&
                 ((s->answer && !s->deaf) || (outgoing_.awaits_acknowledgement() && s->acknowledged > s->sent.begin()));
        });
  }
  const bool still = moved_bytes() == before;
  if (outgoing_.awaits_acknowledgement()) copy_instead(still, done);
  // Unless a peer says that it leaves, what it had sent before it left is on this machine. One that lives has lost that
  // connection alone.
  if (had_ended && still && !peer_leaves_ && taken_from_ahead() == taken_before) break_off_ended(done);
  return true;
}

void Link::break_off_ended(Completions* done) {
  std::string problem = kClosed;
  for (auto& s : streams_)
    if (s && s->state == Stream::State::open && s->ended) break_off(s.get(), &problem, done);
  ended_ = false;
}

// A receiver that has other things to do keeps its senders no longer than the kernel's buffers do. A short message, or
// the end of a long one, is copied as soon as nothing else is to come: its sender would wait longer for the peer's word
// than that takes. More when nothing has moved for a while, as it costs more than the peer's word does.
void Link::copy_instead(bool still, Completions* done) {
  if (incoming_.empty() && outgoing_.awaited_bytes(streams_) <= kCopiedAtOnceMax)
    return outgoing_.copy_some(streams_, done);
  if (!still) {
    still_since_ns_ = 0;
    return;
  }
  const std::int64_t now = now_ns();
  if (still_since_ns_ == 0) still_since_ns_ = now;
  if (now - still_since_ns_ > kStillNs) outgoing_.copy_some(streams_, done);
}

bool Link::resume(Completions* done, std::string* problem) {
  for (auto& s : streams_) {
    if (!s || s->state != Stream::State::resuming) continue;
    switch (outgoing_.resume(s.get(), done, problem)) {
      case Stream::Resumed::not_yet: break;
      case Stream::Resumed::yes: counts_.bytes_repeated += s->sent.end() - s->sent.sent(); break;
      case Stream::Resumed::broken: outgoing_.break_off(s.get(), *problem, done); break;
      case Stream::Resumed::failed: return false;
    }
  }
  return true;
}

bool Link::broken() const {
  return mends_ && std::ranges::any_of(streams_, [](const auto& s) { return s && s->state == Stream::State::broken; });
}

bool Link::mending() const {
  return mends_ && std::ranges::any_of(streams_, [](const auto& s) { return s && s->state != Stream::State::open; });
}

std::string Link::problem() const {
  for (const auto& s : streams_)
    if (s && s->state == Stream::State::broken) return s->problem;
  return {};
}

// Something to say or to repeat, whatever transfers there are.
bool Link::owes() const {
  return std::ranges::any_of(streams_, [](const auto& s) {
    return s && (s->state != Stream::State::open || (!s->deaf && (s->sent.behind() || s->header_left > 0)) ||
                 s->owes_acknowledgement());
  });
}

bool Link::delivered(bool checked, Completions* done) {
  if (peer_leaves_) return true;
  bool all = true;
  for (auto& s : streams_) {
    if (!s || s->sent.end() == s->acknowledged) continue;
    // Who has ended one connection may read what comes over the next.
    if (s->deaf && !s->ended && s->state == Stream::State::open) continue;
    if (s->state != Stream::State::open || s->sent.behind() || s->header_left > 0) {
      all = false;
      continue;
    }
    std::string problem;
    const bool heard = !incoming_.held_up(*s) || incoming_.hear(s.get(), &problem);
    const bool vouched = !checked || s->messages_end <= s->acknowledged;
    // A peer that has ended its side wants nothing more. Where it has not said so, something on the way may have.
    if (vouched && (problem == kClosed || s->sent.end() == s->acknowledged)) continue;
    if (!heard) outgoing_.break_off(s.get(), problem, done);
    int unsent = 0;
    all = all && vouched && s->fd && ioctl(s->fd.get(), SIOCOUTQ, &unsent) == 0 && unsent == 0;
  }
  return all;
}

bool Link::advance_sends(Completions* done, std::string* problem) {
  if (!connected() || (outgoing_.empty() && !(mends_ && owes()))) return true;
  if (!outgoing_.advance(streams_, done, problem)) return false;
  if (!mends_) return true;
  if (outgoing_.awaits_acknowledgement() && incoming_.empty() && outgoing_.awaited_bytes(streams_) <= kCopiedAtOnceMax)
    outgoing_.copy_some(streams_, done);
  // A rank that only sends hears now and then what it need not keep.
  for (auto& s : streams_) {
    if (!s || s->state != Stream::State::open || s->sent.size() < s->listen_at || !incoming_.held_up(*s)) continue;
    if (!(s->sent.size() < kListenMin ? incoming_.hear(s.get(), problem) : incoming_.listen(s.get(), problem))) {
      if (!break_off(s.get(), problem, done)) return false;
      continue;
    }
    if (!outgoing_.advance(streams_, done, problem)) return false;
    s->listen_at = s->sent.size() + kListenStep;
  }
  return true;
}

// What was read of the stream says so. False: that does not pass with the connection.
bool Link::break_off(Stream* s, std::string* problem, Completions* done) {
  counts_.frames_damaged += s->damaged;
  if (!mends_ || !(s->ended || s->damaged)) return false;
  if (checks_) incoming_.go_back(s);  // at once: frames on other streams count on what lies before them
  outgoing_.break_off(s, *problem, done);
  return true;
}

bool Link::receive_from(Stream* s, bool first, Completions* done, Staging* staging, std::string* problem) {
  if (s->state != Stream::State::open || s->ended) return true;
  if (incoming_.empty() ? !mends_ || incoming_.hear(s, problem) : incoming_.advance(s, first, done, staging, problem))
    return true;
  if (!s->ended || *problem != kClosed) return break_off(s, problem, done);
  s->deaf = mends_;
  return ended_ = true;
}

// A peer that leaves ends all streams, and what it has written to the others may be all that is waited for.
bool Link::end_matters() const {
  if (!ended_) return false;
  if (incoming_.empty()) return mends_ && outgoing_.awaits_acknowledgement();
  bool may_come = false;
  const bool any_left = std::ranges::any_of(streams_, [](const auto& s) { return s && !s->ended; });
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (!streams_[i]) continue;
    // Its peer may have given up an attempt that took too long, and dials again.
    if (!mends_ && any_left && streams_[i]->ended && streams_[i]->moved_bytes == 0) {
      may_come = true;
      continue;
    }
    if (incoming_.cut_off(*streams_[i], i == 0)) return true;
    may_come = may_come || incoming_.may_bring(*streams_[i], i == 0);
  }
  return !may_come;
}

bool Link::advance_receives(Completions* done, Staging* staging, std::string* problem) {
  if (!connected() || (incoming_.empty() && !outgoing_.awaits_acknowledgement())) return true;
  // Each message begins on the first stream; only long ones go on over others.
  if (!receive_from(streams_[0].get(), true, done, staging, problem)) return false;
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    const bool wanted = incoming_.empty() ? outgoing_.awaits_acknowledgement()
                                          : incoming_.over_several() || (mends_ && outgoing_.awaits_acknowledgement());
    if (streams_[i] && wanted && !receive_from(streams_[i].get(), false, done, staging, problem)) return false;
  }
  if (!end_matters()) return true;
  if (mends_) return break_off_ended(done), true;
  *problem = kClosed;
  return false;
}

bool Link::cancel(GCCL_Transfer* t) { return outgoing_.cancel(streams_, t) || incoming_.cancel(t); }

bool Link::register_with(int epoll) {
  assert(epoll >= 0);
  if (registered_) return true;
  for (auto& s : streams_) {
    if (!s || s->registered) continue;
    epoll_event e{};
    e.events = EPOLLIN | EPOLLOUT | EPOLLET;
    e.data.ptr = this;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd.get(), &e) != 0) return false;
    s->registered = true;
  }
  return registered_ = true;
}

bool Link::vanished(const Settings& settings) const {
  return std::ranges::any_of(streams_, [&](const auto& s) { return s && tcp::vanished(s->fd.get(), settings); });
}

void Link::break_off_vanished(const Settings& settings, const std::string& why, Completions* done) {
  for (auto& s : streams_) {
    if (!s || !s->fd || !tcp::vanished(s->fd.get(), settings)) continue;
    if (checks_) incoming_.go_back(s.get());
    outgoing_.break_off(s.get(), why, done);
  }
}

std::uint64_t Link::moved_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& s : streams_) sum += s ? s->moved_bytes : 0;
  return sum;
}

std::uint64_t Link::taken_from_ahead() const {
  std::uint64_t sum = 0;
  for (const auto& s : streams_) sum += s ? s->ahead.dropped() : 0;
  return sum;
}

fault::Arrivals Link::take_arrivals() {
  fault::Arrivals all;
  for (const auto& s : streams_)
    if (s) all += s->waits.take(s->written);
  return all;
}

std::string Link::doing() const {
  const GCCL_Transfer* const t = incoming_.empty() ? outgoing_.front() : incoming_.front();
  return fmt::format("{} {} bytes", incoming_.empty() ? "sending" : "receiving", t ? t->bytes : 0);
}

void Link::peer_leaves() {
  peer_leaves_ = true;
  for (auto& s : streams_)
    if (s) s->deaf = true;
}

SocketAddress Link::remote() const {
  for (const auto& s : streams_)
    if (s && s->fd) return s->remote;
  return {};
}

SocketAddress Link::last_remote() const { return connected() ? streams_[0]->remote : SocketAddress(); }

void Link::take_leave(Completions* done) {
  for (auto& s : streams_)
    if (s && s->state == Stream::State::open && s->unsaid() > 0) s->answer = true;
  std::string problem;
  if (connected()) advance_sends(done, &problem);
}

Link::~Link() {
  for (auto& s : streams_) {
    if (!s) continue;
    // Unread bytes would make the kernel answer with a reset, and drop what it has not delivered yet. Only a peer whose
    // messages nobody received left any; it gets no more than this.
    std::byte nowhere[4096];
    for (int i = 0; i < 4096 && recv(s->fd.get(), nowhere, sizeof nowhere, MSG_DONTWAIT) > 0; ++i) {
    }
  }
}

}  // namespace gccl::tcp
