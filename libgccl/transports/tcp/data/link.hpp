// Everything between this rank and one peer on one channel: its connections and the transfers over them.
#pragma once

#include <chrono>
#include <string>

#include "libgccl/transports/tcp/data/incoming.hpp"
#include "libgccl/transports/tcp/data/outgoing.hpp"
#include "libgccl/transports/tcp/settings.hpp"

namespace gccl::tcp {

class Link {
 public:
  Link(std::uint32_t peer, std::uint32_t channel) : peer_(peer), channel_(channel) {}
  // Ends all connections. What was written is delivered.
  ~Link();
  Link(const Link&) = delete;

  std::uint32_t peer() const { return peer_; }
  std::uint32_t channel() const { return channel_; }

  // One of `streams` connections. False when it contradicts what is there: a second one for the same place.
  bool connect(std::uint32_t stream, std::uint32_t streams, Fd fd, const Settings& settings);
  // Able to transfer; more streams may still come.
  bool connected() const { return !streams_.empty() && streams_[0]; }

  void post_send(GCCL_Transfer* t) { outgoing_.post(t); }
  void post_receive(GCCL_Transfer* t) { incoming_.post(t); }
  bool sends() const { return !outgoing_.empty(); }
  bool idle() const { return outgoing_.empty() && incoming_.empty(); }
  // Moves what can be moved without waiting. False: *problem says what happened to the connection.
  bool advance(Completions* done, Staging* staging, std::string* problem) {
    return advance_sends(done, problem) && advance_receives(done, staging, problem);
  }
  bool advance_sends(Completions* done, std::string* problem);
  bool advance_receives(Completions* done, Staging* staging, std::string* problem);
  bool cancel(GCCL_Transfer* t);
  // "sending 8 bytes".
  std::string doing() const;

  // Has the port's epoll report all connections, by this link's address; once each. False when it cannot.
  bool register_with(int epoll);
  // Whether the machine behind one of the connections has stopped answering.
  bool vanished(const Settings& settings) const;
  // Bytes moved so far, both ways.
  std::uint64_t moved_bytes() const;

  // The port's.
  bool active = false;                                   // in its list
  bool ready = true;                                     // worth an attempt
  bool asked = false;                                    // the peer, to dial
  std::chrono::steady_clock::time_point active_since{};  // where the peer is to dial

 private:
  std::uint32_t peer_, channel_;
  Streams streams_;
  bool registered_ = false;
  Outgoing outgoing_;
  Incoming incoming_;
};

}  // namespace gccl::tcp
