#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <thread>

#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "libgccl/bootstrap/wait_for.hpp"
#include "libgccl/net/handshake.hpp"

namespace gccl {
namespace {

// How long the network may take to say whether an address can be reached at all.
constexpr std::int64_t kConnectMs = 3000;
// How long one of several addresses may be silent once it has accepted: a stranger may listen there, and rank 0 at
// another. Rank 0 waits no longer for a peer either.
constexpr std::int64_t kSilentMs = 5000;

class TcpStoreClient : public Exchange {
 public:
  explicit TcpStoreClient(const TcpStore& store) : store_(store) { assert(store.rank < store.size); }

  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    if (!broken_.ok()) return broken_;
    const Status s = exchange(mine, all, timeout_ms);
    if (!s.ok()) {
      broken_ = s;
      fd_.reset();
    }
    return s;
  }

 private:
  std::string me() const { return fmt::format("rank {}", store_.rank); }

  Status exchange(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) {
    const Deadline deadline = Deadline::in_ms(timeout_ms);
    if (!fd_)
      if (Status s = meet(deadline, timeout_ms); !s.ok()) return s;
    const Contribution contribution{timeout_ms, deadline.left_ms(), mine.size()};
    const Deadline limit = Deadline::in_ms(deadline.left_ms() + kGraceMs);
    const auto frame = BytesOut().raw(contribution.head()).raw(mine).take();
    if (Status s = write_all(frame, limit, timeout_ms); !s.ok()) return s;
    std::vector<std::byte> head(Answer::kHeadBytes);
    if (Status s = read_all(head, limit, timeout_ms); !s.ok()) return s;
    Answer answer;
    if (!Answer::parse(head, std::uint64_t(mine.size()) * store_.size, &answer))
      return Status::error(
          fmt::format("{}: rank 0's answer from {} makes no sense: is it the same release?", me(), text_of(store_.at)),
          GCCL_ERR_REMOTE);
    std::vector<std::byte> data(answer.bytes);
    if (Status s = read_all(data, limit, timeout_ms); !s.ok()) return s;
    if (answer.code != 0) return answer.status(data);
    *all = std::move(data);
    return {};
  }

  // Dials until rank 0 has accepted this rank.
  Status meet(Deadline deadline, std::int64_t timeout_ms) {
    std::string last = "no attempt yet";
    for (int pause_ms = 1; !deadline.passed(); pause_ms = std::min(pause_ms * 2, 250)) {
      std::vector<SocketAddress> addresses;
      // A host that has no address yet may get one: schedulers start name servers and ranks at the same time.
      if (const Status s = resolve(store_.at.host, store_.at.port, &addresses); !s.ok()) last = s.text();
      Status refusal;
      bool may_go_better = addresses.empty();
      for (const SocketAddress& address : addresses) {
        if (Status s = check_reach(store_, address); !s.ok()) return s;
        bool again = false;
        const std::int64_t part_ms = std::min(kSilentMs, deadline.left_ms() / 2);
        const Status s =
            dial_store(address, addresses.size() > 1 ? deadline.earlier(Deadline::in_ms(part_ms)) : deadline, &again);
        if (s.ok()) return s;
        // This rank's own shortage, of descriptors or of memory for the handshake, is none that waiting for rank 0
        // would end. A rank that dials a peer tries again, as a job is at stake; here none has begun, and what is short
        // while a process starts, before its program has taken anything, is a limit: it is said now, not when time is
        // up.
        if (s.code() == GCCL_ERR_SYSTEM)
          return Status::error(fmt::format("{}: cannot dial the store at {}: {}", me(), text_of(store_.at), s.text()),
                               s.code());
        last = &address == &addresses[0] ? s.text() : fmt::format("{}; {}", last, s.text());
        may_go_better = may_go_better || again;
        if (!again && refusal.code() != GCCL_ERR_AUTHENTICATION) refusal = s;
      }
      // What speaks otherwise at one address does not keep rank 0 from another; another secret is most likely its own.
      if (!may_go_better || refusal.code() == GCCL_ERR_AUTHENTICATION)
        return Status::error(fmt::format("{}: the store at {}", me(), refusal.text()), refusal.code());
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min<std::int64_t>(pause_ms, deadline.left_ms())));
    }
    return Status::error(fmt::format("{}: rank 0 of {} did not answer at {} within {} ({}): has it started, is this "
                                     "its address, and does nothing block the port?",
                                     me(), store_.size, text_of(store_.at), duration_text(timeout_ms), last),
                         GCCL_ERR_TIMEOUT);
  }

  // *again: it may go better another time.
  Status dial_store(const SocketAddress& address, Deadline deadline, bool* again) {
    assert(!fd_);
    *again = true;
    Fd fd;
    if (Status s = dial(address, &fd); !s.ok()) return s;
    if (!wait_for(fd.get(), POLLOUT, deadline.earlier(Deadline::in_ms(kConnectMs))))
      return Status::error(fmt::format("{}: no connection yet", address.text()), GCCL_ERR_TIMEOUT);
    if (Status s = dialled(fd.get(), address); !s.ok()) return s;
    Handshake handshake = Handshake::dial(store_.secret, tcp_store_hello(store_.rank, store_.size));
    for (;;) {
      const Handshake::State state = handshake.advance(fd.get());
      if (state == Handshake::State::done) break;
      if (state == Handshake::State::failed) {
        *again = handshake.disconnected();
        std::string text = fmt::format("{}: {}", address.text(), handshake.error());
        if (handshake.failed_here()) return Status::error(text, GCCL_ERR_SYSTEM);
        if (!handshake.unauthenticated()) return Status::error(text, *again ? GCCL_ERR_PEER_LOST : GCCL_ERR_REMOTE);
        return Status::error(fmt::format("{}: set the same GCCL_SECRET or GCCL_SECRET_FILE for every rank", text),
                             GCCL_ERR_AUTHENTICATION);
      }
      if (!wait_for(fd.get(), state == Handshake::State::wants_read ? POLLIN : POLLOUT, deadline))
        return Status::error(fmt::format("{}: connected, but it does not answer", address.text()), GCCL_ERR_TIMEOUT);
    }
    *again = false;
    fd_ = std::move(fd);
    return {};
  }

  Status lost(const std::string& why) const {
    return Status::error(
        fmt::format("{}: lost rank 0 at {} while the ranks met ({}): it failed or ended; its own messages say why",
                    me(), text_of(store_.at), why),
        GCCL_ERR_PEER_LOST);
  }
  Status late(std::int64_t timeout_ms) const {
    return Status::error(fmt::format("{}: rank 0 of {} at {} has not heard from all ranks within {}", me(), store_.size,
                                     text_of(store_.at), duration_text(timeout_ms)),
                         GCCL_ERR_TIMEOUT);
  }

  Status write_all(std::span<const std::byte> bytes, Deadline deadline, std::int64_t timeout_ms) {
    assert(fd_);
    while (!bytes.empty()) {
      const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n >= 0)
        bytes = bytes.subspan(std::size_t(n));
      else if (errno == EPIPE || errno == ECONNRESET)
        return {};  // rank 0 has gone; what it had to say comes first
      else if (errno == EAGAIN && !wait_for(fd_.get(), POLLOUT, deadline))
        return late(timeout_ms);
      else if (errno != EAGAIN && errno != EINTR)
        return lost(std::generic_category().message(errno));
    }
    return {};
  }

  Status read_all(std::span<std::byte> bytes, Deadline deadline, std::int64_t timeout_ms) {
    assert(fd_);
    while (!bytes.empty()) {
      const ssize_t n = recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (n > 0)
        bytes = bytes.subspan(std::size_t(n));
      else if (n == 0)
        return lost("the connection was closed");
      else if (errno == EAGAIN && !wait_for(fd_.get(), POLLIN, deadline))
        return late(timeout_ms);
      else if (errno != EAGAIN && errno != EINTR)
        return lost(std::generic_category().message(errno));
    }
    return {};
  }

  const TcpStore store_;
  Fd fd_;
  Status broken_;
};

}  // namespace

std::unique_ptr<Exchange> make_tcp_store_client(const TcpStore& store) {
  return std::make_unique<TcpStoreClient>(store);
}

}  // namespace gccl
