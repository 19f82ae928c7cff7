// Everything between this rank and one peer on one channel: its connections and the transfers over them.
#pragma once

#include <chrono>
#include <string>

#include "libgccl/transports/link_counts.hpp"
#include "libgccl/transports/tcp/data/incoming.hpp"
#include "libgccl/transports/tcp/data/outgoing.hpp"
#include "libgccl/transports/tcp/settings.hpp"

namespace gccl::tcp {

class Link {
 public:
  Link(std::uint32_t peer, std::uint32_t channel, bool mends, bool checks)
      : peer_(peer), channel_(channel), mends_(mends), checks_(checks) {}
  // Ends all connections. What was written is delivered.
  ~Link();
  Link(const Link&) = delete;

  std::uint32_t peer() const { return peer_; }
  std::uint32_t channel() const { return channel_; }

  // One of `streams` connections, or a further one of a stream. False when it contradicts what is there: a second one
  // for the same place. (Also where links are not mended a later one counts, where nothing has moved over the first:
  // the peer has given that up before it could know that it is accepted.) Where it throws, as memory is short, the
  // socket is still the caller's.
  struct Connection {
    std::uint32_t stream = 0, streams = 1;
    std::uint64_t number = 0;
    bool fresh = true;  // Stream::connect
  };
  bool connect(const Connection& c, Fd&& fd, const Settings& settings, Completions* done);
  // Able to transfer; more streams may still come.
  bool connected() const { return !streams_.empty() && streams_[0]; }

  void post_send(GCCL_Transfer* t) { outgoing_.post(t); }
  void post_receive(GCCL_Transfer* t) { incoming_.post(t); }
  bool sends() const { return !outgoing_.empty(); }
  bool transfers() const { return !outgoing_.empty() || !incoming_.empty(); }
  bool idle() const { return outgoing_.empty() && incoming_.empty() && (!mends_ || !owes()); }
  // There may be something to do although nothing has arrived: a matter of time.
  bool timed() const { return ended_ || (mends_ && (outgoing_.awaits_acknowledgement() || owes())); }
  // All that was sent has come to the peer's process, or at least to its machine; `checked`: all messages to its
  // process, which found them undamaged.
  bool delivered(bool checked, Completions* done);
  // Nothing more will be received: the peer need not wait to hear what has been.
  void take_leave(Completions* done);
  // The peer's port ends, and hears nothing more.
  void peer_leaves();
  SocketAddress remote() const;       // where the peer is; none: no stream has a connection
  SocketAddress last_remote() const;  // or was, on the last one of its first stream
  // Moves what can be moved without waiting. False: *problem says what happened to the connection.
  bool advance(Completions* done, Staging* staging, std::string* problem);
  bool advance_sends(Completions* done, std::string* problem);
  bool advance_receives(Completions* done, Staging* staging, std::string* problem);
  bool cancel(GCCL_Transfer* t);
  // "sending 8 bytes".
  std::string doing() const;

  // Has the port's epoll report all connections, by this link's address; once each. False when it cannot.
  bool register_with(int epoll);
  // Whether the machine behind one of the connections has stopped answering.
  bool vanished(const Settings& settings) const;
  // Ends these, where links are mended.
  void break_off_vanished(const Settings& settings, const std::string& why, Completions* done);
  // Streams whose connections broke and are to be made anew.
  const Streams& streams() const { return streams_; }
  bool broken() const;
  // Or one that has a connection again, and has not gone on.
  bool mending() const;
  std::string problem() const;  // how one of them broke; empty: none did
  const LinkCounts& counts() const { return counts_; }

  fault::Arrivals take_arrivals();

  // Bytes moved so far, both ways.
  std::uint64_t moved_bytes() const;
  // And out of what had been read ahead, of which no socket says that there is more.
  std::uint64_t taken_from_ahead() const;

  // The port's.
  bool active = false;                                   // in its list
  bool ready = true;                                     // worth an attempt
  bool asked = false;                                    // the peer, to dial
  std::chrono::steady_clock::time_point active_since{};  // where the peer is to dial

 private:
  bool advance_mended(Completions* done, Staging* staging, std::string* problem);
  bool advance_ended(Completions* done, Staging* staging, std::string* problem);
  void copy_instead(bool still, Completions* done);
  bool resume(Completions* done, std::string* problem);
  bool owes() const;
  bool break_off(Stream* s, std::string* problem, Completions* done);
  bool end_matters() const;
  void break_off_ended(Completions* done);
  bool receive_from(Stream* s, bool first, Completions* done, Staging* staging, std::string* problem);

  std::uint32_t peer_, channel_;
  const bool mends_, checks_;
  // Nothing has moved, and sends wait for the peer's word, or a stream has ended; 0: something has.
  std::int64_t still_since_ns_ = 0;
  LinkCounts counts_;
  Streams streams_;
  bool registered_ = false;
  bool peer_leaves_ = false;
  bool ended_ = false;  // a stream, which is open all the same
  Outgoing outgoing_;
  Incoming incoming_;
};

}  // namespace gccl::tcp
