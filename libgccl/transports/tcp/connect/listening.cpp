// The connector's listening side: whom it takes, and whom it drops where there are too many, or descriptors or memory
// are short.
#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "libgccl/transports/tcp/connect/connector.hpp"

namespace gccl::tcp {
namespace {

// Then those that have something to say have their turn.
constexpr int kAcceptsPerTurn = 1024;
// Without a descriptor for one more, peers that have not introduced themselves for so long are strangers.
constexpr std::chrono::milliseconds kStranger{250};
// How long nobody is accepted where not even a descriptor can be had.
constexpr std::chrono::milliseconds kDescriptorPause{250};
// The same, while the one that is kept in reserve is in use, and where memory is short.
constexpr std::chrono::milliseconds kReservePause{20};
// Where that one is not to be had for so long, somebody else has it.
constexpr std::chrono::seconds kUnreported{1};

}  // namespace

void Connector::note_unauthenticated(PendingConnection* c) {
  const bool belongs = c->unauthenticated();
  if (belongs == c->among_unauthenticated) return;
  if (belongs) {
    c->unauthenticated_place = unauthenticated_.insert(unauthenticated_.end(), c);
  } else {
    unauthenticated_.erase(c->unauthenticated_place);
  }
  c->among_unauthenticated = belongs;
}

bool Connector::accept_pending() try {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Fd fd;
    SocketAddress who;
    // No connection that stays may have the last descriptor.
    if (!reserve_.hold()) {
      if (const auto now = Clock::now(); short_since_ == Clock::time_point()) {
        short_since_ = now;
      } else if (now - short_since_ > kUnreported) {
        short_since_ = now;
        refusals_.refused({}, "no descriptor is left, not even to say so (see ulimit -n)");
      }
      return pause_listening(kReservePause), false;
    }
    short_since_ = {};
    Status s = accept_from(listener_.get(), &fd, &who);
    // Strangers may have taken all descriptors.
    for (int k = 0; k < 2 && !s.ok() && !unauthenticated_.empty() && unauthenticated_.front()->older_than(kStranger);
         ++k) {
      drop_oldest(fmt::format("it does not introduce itself, and this rank {}", s.text()));
      s = accept_from(listener_.get(), &fd, &who);
    }
    const bool last = !s.ok() && reserve_.borrow([&] {
      s = accept_from(listener_.get(), &fd, &who);
      return bool(fd);
    });
    if (!s.ok()) {
      refusals_.refused(who, s.text());
      return pause_listening(kDescriptorPause), false;
    }
    if (!fd) return true;
    if (unauthenticated_.size() >= kUnauthenticatedMax)
      drop_oldest("too many connections that do not introduce themselves");
    PendingConnection* c = nullptr;
    try {
      auto accepted = std::make_unique<Accept>(std::move(fd), who, &accept_context_, last);
      c = accepted.get();
      add(std::move(accepted));
    } catch (const std::bad_alloc&) {  // honest peers dial again
      if (const auto i = pending_.find(c); i != pending_.end()) drop(i);
      return pause_listening(kReservePause), false;
    }
    advance(c, &PendingConnection::ready);  // honest peers begin at once
  }
  return false;
} catch (const std::bad_alloc&) {  // it was about to say why it refuses one
  pause_listening(kReservePause);
  return false;
}

void Connector::drop_oldest(const std::string& why) {
  assert(!unauthenticated_.empty());
  PendingConnection* const oldest = unauthenticated_.front();
  static_cast<Accept*>(oldest)->report_dropped(why);
  drop(pending_.find(oldest));
}

void Connector::pause_listening(std::chrono::milliseconds pause) {
  listen_again_ = Clock::now() + pause;
  next_check_ = std::min(next_check_, listen_again_);
  listen_for(0);
}

void Connector::listen_for(std::uint32_t events) {
  epoll_event e{};
  e.events = events;
  e.data.ptr = &listener_;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &e);
}

}  // namespace gccl::tcp
