// One connected socket of a link, with what is half written to it and half read from it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/base/clock.hpp"
#include "libgccl/net/socket.hpp"
#include "libgccl/transports/tcp/data/frame.hpp"
#include "libgccl/transports/tcp/data/zero_copy.hpp"

namespace gccl::tcp {

// Bytes read ahead: headers and short messages, several in one system call. Long payloads pass by it.
class ReadAhead {
 public:
  static constexpr std::size_t kBytes = 4096;

  std::size_t size() const { return end_ - begin_; }
  const std::byte* data() const { return bytes_.data() + begin_; }
  void drop(std::size_t n);
  // Room behind what is there, at most kBytes in all.
  std::span<std::byte> room();
  void grew(std::size_t n);
  // What turned out to belong to later frames; the only way to exceed kBytes.
  void append(std::span<const std::byte> more);

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  std::size_t begin_ = 0, end_ = 0;
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

struct Stream {
  Fd fd;
  bool registered = false;        // with the port's epoll
  std::uint64_t moved_bytes = 0;  // in both directions: says whether an attempt was of use

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
};

enum class IoResult { all, some, failed };  // `some`: the socket takes no more for now, or the visit is over

// Writes the rest of the frame that is being sent, for as long as the visit goes on.
IoResult write_frame(Stream* stream, Visit* visit, int* error);

}  // namespace gccl::tcp
