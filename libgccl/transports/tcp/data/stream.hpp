// One of a link's sockets, with what is half written to it and half read from it; where links are mended, one socket
// after the other.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/base/clock.hpp"
#include "libgccl/fault/link_frame.hpp"
#include "libgccl/net/socket.hpp"
#include "libgccl/transports/tcp/data/frame.hpp"
#include "libgccl/transports/tcp/data/unacknowledged.hpp"
#include "libgccl/transports/tcp/data/waits.hpp"
#include "libgccl/transports/tcp/data/zero_copy.hpp"

namespace gccl::tcp {

// Bytes read ahead: headers and short messages, several in one system call. Long payloads pass by it, unless what
// follows them is looked for before they are received (Incoming::listen).
class ReadAhead {
 public:
  static constexpr std::size_t kBytes = 4096;

  std::size_t size() const { return end_ - begin_; }
  const std::byte* data() const { return bytes_.data() + begin_; }
  void drop(std::size_t n);
  // Room behind what is there, at most kBytes in all.
  std::span<std::byte> room();
  void grew(std::size_t n);
  // What turned out to belong to later frames; this and more_room() exceed kBytes.
  void append(std::span<const std::byte> more);
  std::span<std::byte> more_room(std::size_t bytes);

  std::uint64_t dropped() const { return dropped_; }        // in all
  std::size_t held_bytes() const { return bytes_.size(); }  // of memory

 private:
  void make_room(std::size_t bytes);

  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t dropped_ = 0;
};

// One stream may keep us this long, in each direction; then other streams, limits of time and the caller have their
// turn. Else a receiver that keeps up keeps its sender in one system call for a whole message of gigabytes. Fewer,
// longer calls are faster: at 256 KiB a 16 MiB message takes a third longer over loopback.
inline constexpr std::uint64_t kVisitBytes = 4 << 20;
// A sender goes on for so long: a program that computes for 10 ms between its looks would send a quarter as fast with
// one visit's bytes for each.
inline constexpr std::int64_t kVisitNs = 5'000'000;

// What is left of a sender's visit.
class Visit {
 public:
  // False when it is over. Else bytes() may be written.
  bool goes_on() {
    if (bytes_ > 0) return true;
    const std::int64_t now = now_ns();
    if (until_ns_ == 0) until_ns_ = now + kVisitNs;
    if (now >= until_ns_) return false;
    bytes_ = kVisitBytes;
    return true;
  }
  std::uint64_t bytes() const { return bytes_; }
  void written(std::uint64_t bytes) { bytes_ -= bytes; }

 private:
  std::uint64_t bytes_ = kVisitBytes;
  std::int64_t until_ns_ = 0;  // 0: its first bytes are not used up
};

// Where links are mended (Settings::mends), what travels over a stream is numbered in bytes, over all its connections.
// Each side keeps what it has written until the other side's headers say that it has been taken, which means: is in
// this process's memory. A connection that breaks is closed at once, so that nothing more of it is taken. On the next
// one both sides say first how much they have taken (a frame of kind resume, fault/link_frame.hpp), and then go on
// there, wherever in a header or payload that is.
struct Stream {
  enum class State {
    open,
    resuming,  // a new connection: nothing but how much has been taken travels
    broken,    // without a connection
  };

  Stream() : Stream(false) {}
  explicit Stream(bool mends, bool checks = false) : mends(mends), checks(checks) {}
  // Begins a further connection, over which the peer says how much it has taken, or, as it has never had one, has taken
  // nothing (`fresh`). False: it has, or does not fit what this side knows.
  bool connect(Fd socket, std::uint64_t number, bool fresh);
  // Ends the connection, as it broke; `done` gets transfers that the kernel alone held.
  template <class Done>
  void break_off(const std::string& why, Done done) {
    close_broken(why);
    zero_copy.end(done);
  }
  // Says and hears how much has been taken, as far as that goes without waiting.
  enum class Resumed { yes, not_yet, broken, failed };
  template <class Done>
  Resumed resume(Done done, std::string* problem) {
    std::uint64_t position = 0;
    const Resumed r = exchange_positions(&position, problem);
    if (r != Resumed::yes) return r;
    if (!sent.go_on_at(position, done)) {
      *problem = "the peer goes on where nothing is kept of what it was sent";
      return Resumed::failed;
    }
    state = State::open;
    return r;
  }
  // Something has arrived that has not been read.
  bool unread() const;
  // What has not been said to the peer yet.
  std::uint64_t unsaid() const { return vouched() - said; }
  // Bytes of the peer's that need not be sent again.
  std::uint64_t vouched() const { return checks ? checked_in : taken_in; }
  // Only a whole frame that is checked is acknowledged, and the sender of a message's last one should not wait for
  // that. Messages up to kStripeBytes are whole on one stream, as nobody looks for parts of them on others.
  bool cuts_tail(std::uint64_t message_bytes, bool alone) const {
    return checks && mends && message_bytes > (alone ? kAnswerMin : kStripeBytes);
  }
  // How much of a message's rest goes into the next frame; `alone`: there is no other stream.
  std::uint64_t cut(std::uint64_t rest, std::uint64_t message_bytes, bool alone) const {
    if (checks) {
      const bool last = cuts_tail(message_bytes, alone) && rest > kTailBytes && rest <= kCheckedFrameBytes + kTailBytes;
      return last ? rest - kTailBytes : std::min(rest, kCheckedFrameBytes);
    }
    return std::min(rest, !alone ? kStripeBytes : mends ? kMendedFrameBytes : kFrameBytesMax);
  }
  // With several streams, messages longer than this are cut so that every stream that can take more gets more.
  static constexpr std::uint64_t kStripeBytes = 256 << 10;
  // Where links are mended, frames end here, so that acknowledgements find room between them.
  static constexpr std::uint64_t kMendedFrameBytes = 1 << 20;
  // Where they are checked, here: a payload is looked at before it goes on, while it is in a core's caches.
  static constexpr std::uint64_t kCheckedFrameBytes = 256 << 10;
  // The end of a message that is longer is acknowledged at once: to copy what its sender waits for would take longer.
  // It is said a little before the end, so that it is there at the end: the sender copies the rest meanwhile.
  static constexpr std::uint64_t kAnswerMin = 64 << 10, kTailBytes = 32 << 10;
  bool owes_acknowledgement() const {
    if (deaf) return false;
    if (answer) return true;
    const bool within = incoming.offset + (in_frame ? taken : incoming.bytes) < incoming.message_bytes;
    return unsaid() >= (within ? kUnsaidWithin : kUnsaidBetween);
  }
  // Bytes that may arrive before their sender hears of it, where nothing else is said to it: between messages, as it
  // copies short ones; and within one, in whose memory they are.
  static constexpr std::uint64_t kUnsaidBetween = 128 << 10, kUnsaidWithin = 2 << 20;

  Fd fd;
  bool registered = false;        // with the port's epoll
  std::uint64_t may_read = 0;     // of payloads, in this visit of the receiver's (kVisitBytes)
  std::uint64_t moved_bytes = 0;  // in both directions: says whether an attempt was of use
  std::uint64_t written = 0;      // of frames, to the socket
  Waits waits;

  ReadAhead ahead;
  bool in_frame = false;  // `incoming` has been read, and `taken` bytes of its payload
  Frame incoming;
  std::uint64_t taken = 0;
  bool announced = false;     // the receive knows of this frame
  std::uint64_t prepaid = 0;  // payload that was read together with a header not yet looked at

  GCCL_Transfer* sending = nullptr;  // whose frame is being written
  std::byte header[kFrameHeaderBytes];
  std::size_t header_left = 0;
  std::uint64_t offset = 0, left = 0;  // payload not yet written
  ZeroCopy zero_copy;

  // Where links are mended; and where frames are checked (Settings::checks).
  const bool mends, checks;
  bool damaged = false;          // what has arrived was
  std::uint64_t checked_in = 0;  // bytes of the peer's up to the end of the last whole frame
  std::uint32_t crc = 0;         // of the payload of `incoming` that has been taken

  State state = State::open;
  bool asked = false;                // for the next connection
  bool ended = false;                // the system said so, in a read or write that failed
  std::uint64_t connection = 0;      // its number
  std::string problem;               // how it broke
  std::int64_t broken_since_ns = 0;  // and later by the time for which it was resuming
  bool stuck = false;                // each connection came to damage in the same place
  SocketAddress remote;              // its other end
  Unacknowledged sent;
  std::uint64_t taken_in = 0;      // bytes taken from the peer so far
  std::uint64_t said = 0;          // of these, what it has heard of
  std::uint64_t acknowledged = 0;  // what it has said
  std::uint64_t messages_end = 0;  // of what has been written: behind it are frames of no message
  bool answer = false;             // it waits for that
  bool answered = false;           // and need not, at the end of the incoming frame
  // The peer reads nothing any more. Its machine would answer what is written to it with a reset, and drop what is
  // still on the way to here.
  bool deaf = false;
  std::uint64_t looked_until = 0;       // Incoming::listen(): the place of the next header, in bytes taken
  std::uint64_t listen_at = 128 << 10;  // kept bytes for which the peer's word is worth looking for

 private:
  void close_broken(const std::string& why);
  Resumed exchange_positions(std::uint64_t* position, std::string* problem);

  std::byte resume_out_[fault::kLinkHeaderBytes], resume_in_[fault::kLinkHeaderBytes];
  std::size_t resume_written_ = 0, resume_read_ = 0;
  std::int64_t resuming_since_ns_ = 0;
  std::int64_t broken_ns_ = 0;                    // when it broke last
  std::uint64_t damaged_at_ = ~std::uint64_t(0);  // behind which byte, when that was for damage
};

enum class IoResult { all, some, failed };  // `some`: the socket takes no more for now, or the visit is over

// Writes the rest of the frame that is being sent, for as long as the visit goes on.
IoResult write_frame(Stream* stream, Visit* visit, int* error);
// The same for what the connection before has lost.
IoResult write_again(Stream* stream, Visit* visit, int* error);

}  // namespace gccl::tcp
