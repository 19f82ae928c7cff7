// A connection on its way to being useful, driven by the connector's thread: a socket, what it waits for, and how long.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <list>
#include <memory>
#include <vector>

#include "libgccl/net/handshake.hpp"
#include "libgccl/transports/tcp/connect/connection_request.hpp"
#include "libgccl/transports/tcp/connect/port_inbox.hpp"

namespace gccl::tcp {

class PendingConnection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Next { go_on, over };

  virtual ~PendingConnection() { end_connection(); }
  // The socket is ready for events(), or has failed.
  virtual Next ready() = 0;
  // deadline() has passed.
  virtual Next expired() = 0;
  // One of these has found no memory, and left half done what it did. Takes none.
  virtual Next starved() noexcept = 0;
  // Nothing comes of it any more, as this process ends.
  virtual void dropped() {}
  // Not yet trusted: these are limited in number.
  virtual bool unauthenticated() const { return false; }

  // -1: waits for its deadline only. May change with each call above, and the events too.
  int fd() const { return fd_.get(); }
  std::uint32_t events() const { return events_; }
  Clock::time_point deadline() const { return deadline_; }
  bool older_than(Clock::duration age) const { return Clock::now() - begun_ > age; }
  // This process has not run for so long, a time in which the peer could not make progress: it does not count.
  void postpone(Clock::duration by) {
    if (deadline_ != Clock::time_point::max()) deadline_ += by;
    begun_ += by;
  }
  // Null before it is known.
  const std::shared_ptr<PortInbox>& inbox() const { return inbox_; }
  // It serves for nothing any more, and ends with its port or its peer.
  bool held() const { return held_; }
  // Goes on when its port is closed, whose links end later.
  bool outlives_port() const { return outlives_port_; }
  // Whether it goes on after that, too. Takes the links that are to end no sooner than it does.
  virtual bool outlives_links(std::vector<std::unique_ptr<Link>>*) { return false; }

  // The connector's: what epoll knows, and where the pending connection is among the unauthenticated.
  int epoll = -1, registered_fd = -1;
  std::uint32_t registered_events = 0;
  bool among_unauthenticated = false;
  std::list<PendingConnection*>::iterator unauthenticated_place;

 protected:
  // The socket, for somebody else.
  Fd hand_over() {
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd_.get(), nullptr);
    return std::move(fd_);
  }
  // The socket, for a stream of the port. Stays where it is if there is no memory for that.
  void arrive(std::uint32_t peer, std::uint32_t channel, const Link::Connection& as) {
    std::list<Arrival> one(1);
    one.front() = {hand_over(), peer, channel, as};
    inbox_->put(std::move(one));
  }
  // For want of memory. The peer may count on the connection: if it ended before this rank's abort comes, which waits
  // for memory, too, the peer would take this rank for lost.
  Next hold() noexcept {
    held_ = true;
    events_ = EPOLLRDHUP;
    deadline_ = Clock::time_point::max();
    return Next::go_on;
  }
  // epoll forgets a closed socket only once nobody uses it, and another thread may just do so (a debugger, a test).
  void end_connection() {
    if (fd_) (void)hand_over();
  }

  Fd fd_;
  std::uint32_t events_ = 0;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point begun_ = Clock::now();
  std::shared_ptr<PortInbox> inbox_;
  bool outlives_port_ = false, held_ = false;
};

// The time a peer has to prove itself once a connection exists, and a connection has to come about.
constexpr std::chrono::seconds kPendingLimit{5};

}  // namespace gccl::tcp
