#include <fmt/core.h>
#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <list>
#include <thread>

#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/bootstrap/join_frame.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "libgccl/net/handshake.hpp"
#include "libgccl/net/refusal_log.hpp"

namespace gccl {
namespace {

// A peer that takes longer than this to introduce itself is dropped; an honest rank dials again.
constexpr std::int64_t kHandshakeMs = 5000;
// Strangers at once beyond the ranks that are still expected; of more the oldest are dropped.
constexpr std::size_t kStrangers = 64;
// Without a descriptor for one more, those are strangers who have not introduced themselves for so long, and the others
// are looked at again after so long: honest ranks take a few milliseconds, and stay.
constexpr std::int64_t kStrangerMs = 250, kDescriptorPauseMs = 20;
// At most so much about the reasons for refusals is in the text about ranks that did not come.
constexpr std::size_t kRefusalBytesMax = 600;
// A port that a job before this one has just left, or that a dialling rank holds for a moment, becomes free within this
// time.
constexpr std::int64_t kBindMs = 5000;

// Has connected and not proved itself yet.
struct Pending {
  Fd fd;
  SocketAddress peer;
  Handshake handshake;
  Deadline deadline;
  bool wants_write = false;
};

struct Member {
  Fd fd;
  SocketAddress peer;
  std::vector<std::byte> head;  // of its contribution; the rest goes to its place
  std::size_t data_bytes = 0;
  bool arrived = false;
  std::size_t answered_bytes = 0;
};

class TcpStoreServer : public Exchange {
 public:
  // `elsewhere`: what is to be said of the store's address where nobody comes.
  TcpStoreServer(const TcpStore& store, Fd listener, std::string elsewhere)
      : store_(store),
        listener_(std::move(listener)),
        log_(fmt::format("rank 0, store {}", text_of(store.at))),
        members_(store.size),
        elsewhere_(std::move(elsewhere)) {}

  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    if (!broken_.ok()) return broken_;
    all->assign(mine.size() * store_.size, std::byte());
    std::copy(mine.begin(), mine.end(), all->begin());
    bytes_ = mine.size();
    all_ = *all;
    limit_ms_ = timeout_ms;
    Deadline deadline = Deadline::in_ms(timeout_ms);
    arrived_ = 1;
    for (Member& m : members_) m.arrived = false, m.head.clear(), m.data_bytes = 0, m.answered_bytes = 0;

    mismatch_ = {};
    Status s;
    while (s.ok() && arrived_ < store_.size)
      s = !doomed_.ok() ? doomed_ : deadline.passed() ? Status::error(missing(), GCCL_ERR_TIMEOUT) : collect(&deadline);
    if (!mismatch_.ok()) s = mismatch_;
    if (s.ok()) {
      first_ = false;
      doomed_ = {};
      s = answer(Deadline::in_ms(deadline.left_ms() + kGraceMs));
    } else {
      send_reason(s);
    }
    if (!s.ok()) {
      broken_ = s;
      members_.clear();
      pending_.clear();
      listener_.reset();
    }
    return s;
  }

 private:
  std::string missing() const {
    std::vector<Rank> ranks;
    for (Rank r = 1; r < store_.size; ++r)
      if (!members_[r].arrived) ranks.push_back(r);
    return fmt::format("{} (store {}){}{}", missing_text(ranks, store_.size, limit_ms_), text_of(store_.at), refusals_,
                       elsewhere_);
  }

  // The rank that was refused may be the one that is missing: all ranks get to read why.
  void refuse(const SocketAddress& who, const std::string& why) {
    log_.refused(who, why);
    const std::string text = fmt::format("; refused {}: {}", who.host(), why);
    if (refusals_.find(text) == std::string::npos && refusals_.size() + text.size() <= kRefusalBytesMax)
      refusals_ += text;
  }

  // One turn: waits for something to happen, and deals with it.
  Status collect(Deadline* deadline) {
    polled_.clear();
    Deadline wake = *deadline;
    const bool listens = listener_ && listens_again_.passed();
    if (listens) polled_.push_back({listener_.get(), POLLIN, 0});
    if (listener_ && !listens) wake = wake.earlier(listens_again_);
    for (Pending& c : pending_) {
      polled_.push_back({c.fd.get(), short(c.wants_write ? POLLOUT : POLLIN), 0});
      wake = wake.earlier(c.deadline);
    }
    for (Member& m : members_)
      if (m.fd) polled_.push_back({m.fd.get(), short(m.arrived ? POLLRDHUP : POLLIN), 0});
    if (poll(polled_.data(), polled_.size(), wake.poll_ms()) < 0 && errno != EINTR && errno != EAGAIN)
      return system_error("rank 0, store: poll", errno);

    // In the order in which they were put there; accepting comes last, as it adds connections.
    auto at = polled_.begin();
    const bool dialled = listens && (at++)->revents != 0;
    for (auto c = pending_.begin(); c != pending_.end(); ++at) c = introduce(c, at->revents != 0);
    for (Member& m : members_) {
      if (at == polled_.end()) break;
      if (!m.fd || m.fd.get() != at->fd) continue;
      if ((at++)->revents != 0)
        if (Status s = receive(m, deadline); !s.ok()) return s;
    }
    if (dialled)
      if (Status s = accept_pending(); !s.ok()) return s;
    if (listener_ && std::all_of(members_.begin() + 1, members_.end(), [](const Member& m) { return bool(m.fd); })) {
      // A rank that dials now belongs to the next job at this address: it is refused, and dials again.
      listener_.reset();
      pending_.clear();
    }
    return {};
  }

  Status accept_pending() {
    for (;;) {
      Fd fd;
      SocketAddress peer;
      const Status s = accept_from(listener_.get(), &fd, &peer);
      if (s.ok() && !fd) return {};
      if (!s.ok() && pending_.empty())
        return Status::error(fmt::format("rank 0, store {}: {}", text_of(store_.at), s.text()), s.code());
      if (!s.ok()) {
        if (pending_.front().deadline.left_ms() > kHandshakeMs - kStrangerMs) {
          listens_again_ = Deadline::in_ms(kDescriptorPauseMs);
          return {};
        }
        refuse(pending_.front().peer, fmt::format("it does not introduce itself, and rank 0 {}", s.text()));
        pending_.pop_front();
        continue;
      }
      if (pending_.size() >= store_.size + kStrangers) {
        log_.refused(pending_.front().peer, "too many connections that do not introduce themselves");
        pending_.pop_front();
      }
      pending_.push_back({std::move(fd), peer, Handshake::accept(store_.secret), Deadline::in_ms(kHandshakeMs)});
    }
  }

  std::list<Pending>::iterator introduce(std::list<Pending>::iterator c, bool ready) {
    if (!ready) {
      if (!c->deadline.passed()) return std::next(c);
      log_.refused(c->peer, fmt::format("did not introduce itself within {}", duration_text(kHandshakeMs)));
      return pending_.erase(c);
    }
    const Handshake::State state = c->handshake.advance(c->fd.get());
    if (state == Handshake::State::failed && c->handshake.disconnected()) log_.refused(c->peer, c->handshake.error());
    if (state == Handshake::State::failed && !c->handshake.disconnected()) refuse(c->peer, c->handshake.error());
    if (state == Handshake::State::done) admit(*c);
    if (state == Handshake::State::done || state == Handshake::State::failed) return pending_.erase(c);
    c->wants_write = state == Handshake::State::wants_write;
    return std::next(c);
  }

  void admit(Pending& c) {
    if (JoinHello joins; JoinHello::parse(c.handshake.hello(), &joins)) return;  // it asks again when the job runs
    Rank rank = 0;
    Status s = parse_tcp_store_hello(c.handshake.hello(), store_.size, &rank);
    // It knows the secret and counts other ranks: this job cannot become complete.
    if (!s.ok())
      doomed_ =
          Status::error(fmt::format("{} ({}): all ranks must give the same size", s.text(), c.peer.text()), s.code());
    if (s.ok() && members_[rank].fd)
      s = Status::error(fmt::format("rank {} is here already, from {}: expected one process for each rank", rank,
                                    members_[rank].peer.text()),
                        GCCL_ERR_INVALID_ARGUMENT);
    if (!s.ok()) {
      refuse(c.peer, s.text());
      send_text(c.fd.get(), s);
      return;
    }
    members_[rank].fd = std::move(c.fd);
    members_[rank].peer = c.peer;
  }

  Status lost(const Member& m, const std::string& why) const {
    return Status::error(fmt::format("rank {} of {} was lost while the ranks met ({}: {})", &m - members_.data(),
                                     store_.size, m.peer.text(), why),
                         GCCL_ERR_PEER_LOST);
  }

  // A rank that goes away before all have come may come again: its process may have been started anew.
  Status went(Member& m, const std::string& why) {
    if (!first_ || !listener_) return lost(m, why);
    log_.refused(m.peer, fmt::format("rank {} went away again ({})", &m - members_.data(), why));
    if (m.arrived) --arrived_;
    m = {};
    return {};
  }

  Status receive(Member& m, Deadline* deadline) {
    const std::size_t rank = std::size_t(&m - members_.data());
    while (!m.arrived) {
      std::byte* to = all_.data() + rank * bytes_ + m.data_bytes;
      std::size_t wanted = bytes_ - m.data_bytes;
      std::byte head[Contribution::kHeadBytes];
      const bool in_head = m.head.size() < Contribution::kHeadBytes;
      if (in_head) to = head, wanted = Contribution::kHeadBytes - m.head.size();
      const ssize_t n = recv(m.fd.get(), to, wanted, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return {};
      if (n <= 0) return went(m, n == 0 ? "the connection was closed" : std::generic_category().message(errno));
      if (in_head) {
        m.head.insert(m.head.end(), head, head + n);
        if (m.head.size() < Contribution::kHeadBytes) continue;
        Contribution c;
        if (!Contribution::parse(m.head, &c) || c.bytes != bytes_) {
          // Reported when all have come, so that all get it.
          mismatch_ = Status::error(
              fmt::format("rank {} contributed {} bytes while rank 0 contributes {}: is it the same release?", rank,
                          c.bytes, bytes_),
              GCCL_ERR_MISMATCH);
          m.arrived = true;
          ++arrived_;
          return {};
        }
        if (c.remaining_ms < deadline->left_ms()) {
          *deadline = Deadline::in_ms(c.remaining_ms);
          limit_ms_ = c.limit_ms;
        }
      } else {
        m.data_bytes += std::size_t(n);
      }
      m.arrived = m.head.size() == Contribution::kHeadBytes && m.data_bytes == bytes_;
      if (m.arrived) ++arrived_;
    }
    // It has contributed and waits for the answer: only its end can be news now, or the rest of what differs.
    std::byte next;
    const ssize_t n = recv(m.fd.get(), &next, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (!mismatch_.ok()) {
      m.fd.reset();
      return {};
    }
    return went(m, n >= 0 ? "the connection was closed" : std::generic_category().message(errno));
  }

  // Everybody's contribution to everybody. A slow reader does not keep the others waiting.
  Status answer(Deadline deadline) {
    const auto head = Answer{0, all_.size()}.head();
    const std::size_t total = head.size() + all_.size();
    Status failure;
    for (;;) {
      polled_.clear();
      for (Member& m : members_) {
        if (!m.fd || m.answered_bytes == total) continue;
        if (Status s = write_answer(m, head); !s.ok()) {
          failure = s;
          m.fd.reset();
        } else if (m.answered_bytes < total) {
          polled_.push_back({m.fd.get(), POLLOUT, 0});
        }
      }
      if (polled_.empty()) return failure;
      if (deadline.passed())
        return Status::error("some ranks do not read what the others contributed", GCCL_ERR_TIMEOUT);
      if (poll(polled_.data(), polled_.size(), deadline.poll_ms()) < 0 && errno != EINTR && errno != EAGAIN)
        return system_error("rank 0, store: poll", errno);
    }
  }

  Status write_answer(Member& m, std::span<const std::byte> head) {
    while (m.answered_bytes < head.size() + all_.size()) {
      iovec parts[2];
      int n = 0;
      const auto add = [&](std::span<const std::byte> part) {
        parts[n++] = {const_cast<std::byte*>(part.data()), part.size()};
      };
      if (m.answered_bytes < head.size()) add(head.subspan(m.answered_bytes));
      add(std::span<const std::byte>(all_).subspan(std::max(m.answered_bytes, head.size()) - head.size()));
      msghdr message{};
      message.msg_iov = parts, message.msg_iovlen = std::size_t(n);
      const ssize_t sent = sendmsg(m.fd.get(), &message, MSG_NOSIGNAL);
      if (sent >= 0)
        m.answered_bytes += std::size_t(sent);
      else if (errno == EAGAIN)
        return {};
      else if (errno != EINTR)
        return lost(m, std::generic_category().message(errno));
    }
    return {};
  }

  // The reason of failure to all ranks that are there. They wait for nothing else: it fits the socket's buffer.
  void send_reason(const Status& status) const {
    for (const Member& m : members_)
      if (m.fd) send_text(m.fd.get(), status);
  }
  static void send_text(int fd, const Status& status) {
    const auto frame = error_answer(status);
    [[maybe_unused]] const ssize_t n = send(fd, frame.data(), frame.size(), MSG_NOSIGNAL);
  }

  const TcpStore store_;
  Fd listener_;
  RefusalLog log_;
  std::list<Pending> pending_;
  Deadline listens_again_ = Deadline::in_ms(0);
  std::vector<Member> members_;  // [0] is this rank, never connected
  std::vector<pollfd> polled_;
  bool first_ = true;  // the first round, in which ranks still come
  const std::string elsewhere_;
  std::string refusals_;  // reasons, each once
  Status doomed_;
  Status broken_;
  // Of the current round.
  std::size_t bytes_ = 0;
  std::span<std::byte> all_;
  std::int64_t limit_ms_ = 0;
  Rank arrived_ = 1;
  Status mismatch_;
};

}  // namespace

// A name may mean loopback here and something else on other machines (Debian's /etc/hosts), and an address may be a
// router's: then, and with a secret only, everywhere.
Status store_addresses(const TcpStore& store, std::vector<SocketAddress>* out, std::string* elsewhere) {
  const SocketAddress numeric = SocketAddress::numeric(store.at.host, store.at.port);
  if (Status s = resolve(store.at.host, store.at.port, out); !s.ok()) return s;
  for (const SocketAddress& a : *out)
    if (Status s = check_reach(store, a); !s.ok()) return s;
  if (store.secret.empty() || store.at.host == "localhost") return {};
  const auto is_here = [own = interface_addresses()](const SocketAddress& a) {
    return a.is_loopback() || std::find(own.begin(), own.end(), a.with_port(0)) != own.end();
  };
  if (numeric.valid() && is_here(numeric)) return {};
  if (elsewhere && std::none_of(out->begin(), out->end(), [&](const auto& a) { return a.is_any() || is_here(a); }))
    *elsewhere = fmt::format("; rank 0 is on a machine without the address {}", (*out)[0].host());
  *out = {SocketAddress::any(store.at.port, AF_INET6), SocketAddress::any(store.at.port, AF_INET)};
  return {};
}

Status open_tcp_store_server(const TcpStore& store, std::unique_ptr<Exchange>* out) {
  assert(store.rank == 0 && store.size > 0);
  std::vector<SocketAddress> addresses;
  std::string elsewhere;
  if (Status s = store_addresses(store, &addresses, &elsewhere); !s.ok()) return s;
  allow_descriptors(2 * std::size_t(store.size) + kStrangers + 256);  // members, and as many pending and kStrangers
  const Deadline deadline = Deadline::in_ms(std::min(kBindMs, store.start_timeout_ms));
  for (;;) {
    Status s;
    int error = 0;
    for (const SocketAddress& a : addresses) {
      Fd listener;
      s = listen_on(a, &listener, &error);
      if (!s.ok()) continue;
      *out = std::make_unique<TcpStoreServer>(store, std::move(listener), std::move(elsewhere));
      return {};
    }
    if (deadline.passed() || error == EMFILE || error == ENFILE)
      return Status::error(fmt::format("rank 0, store {}: {}{}", text_of(store.at), s.text(),
                                       error == EADDRINUSE || error == EACCES ? ": choose another port" : ""),
                           s.code());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace gccl
