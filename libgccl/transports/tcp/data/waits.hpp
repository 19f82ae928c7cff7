// When the two ends of a stream wait for the link between them, and when one is held up by its own process.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "libgccl/base/clock.hpp"
#include "libgccl/fault/arrivals.hpp"

namespace gccl::tcp {

// Costs a look at the clock for each attempt that the socket refuses, and one for each long frame; nothing where it is
// off.
class Waits {
 public:
  // From now on, over that socket: also a further one, by which the link goes on.
  void watch(int fd) {
    on_ = true;
    send_buffer_ = buffer_bytes(fd, SO_SNDBUF);
    empty_since_ns_ = full_since_ns_ = 0;
    within_ = false;
  }
  // What has been seen since the last time.
  fault::Arrivals take(std::uint64_t written) {
    seen_.sent = written - std::exchange(written_, written);
    return std::exchange(seen_, {});
  }

  // The socket was read until it was empty. `frame_bytes`: of the frame that it was within; 0: of none. `taken`: bytes
  // read from it so far.
  void empty(int fd, std::uint64_t frame_bytes, std::uint64_t taken) {
    if (on_) count_wait(fd, frame_bytes, taken);
  }
  void frame_ends(std::uint64_t bytes, std::uint64_t taken) {
    if (on_ && bytes >= fault::Arrivals::kLongBytes) count_frame(bytes, taken);
    within_ = false;
  }

  // Bytes of a frame are left, and the socket takes no more. `written`: to it so far.
  void full(std::uint64_t written) {
    if (!on_) return;
    const std::int64_t now = now_ns();
    if (full_since_ns_ != 0 && written - full_at_ >= send_buffer_ / 4) count_away(now);
    full_since_ns_ = now;
    full_at_ = written;
  }
  // The last of them are written: whether the socket ran empty before is not known.
  void frame_written() {
    if (full_since_ns_ == 0) return;
    count_away(now_ns());
    full_since_ns_ = 0;
  }

 private:
  static std::uint64_t buffer_bytes(int fd, int which) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    return getsockopt(fd, SOL_SOCKET, which, &bytes, &size) == 0 ? std::uint64_t(bytes) : 0;
  }
  void count_away(std::int64_t now) { seen_.away_ns += std::uint64_t(now - full_since_ns_); }
  void count_wait(int fd, std::uint64_t frame_bytes, std::uint64_t taken) {
    const std::int64_t now = now_ns();
    if (within_) {
      // The room is half of the buffer at most. Little always fits: no buffer is smaller.
      const std::uint64_t came = taken - empty_at_;
      if (came < kAlwaysFits || came < buffer_bytes(fd, SO_RCVBUF) / 4)
        seen_.waited_ns += std::uint64_t(now - empty_since_ns_);
    }
    within_ = frame_bytes >= fault::Arrivals::kLongBytes;
    empty_since_ns_ = now;
    empty_at_ = taken;
  }
  void count_frame(std::uint64_t bytes, std::uint64_t taken) {
    seen_.bytes += bytes;
    const std::uint64_t came = taken - empty_at_;
    if (empty_since_ns_ == 0 || came < fault::Arrivals::kBestBytes) return;
    const auto took = std::max<std::int64_t>(now_ns() - empty_since_ns_, 1);
    seen_.best = std::max(seen_.best, std::uint64_t(double(came) / double(took) * 1e9));
  }
  static constexpr std::uint64_t kAlwaysFits = 16 << 10;

  bool on_ = false;
  std::uint64_t send_buffer_ = 0;
  std::int64_t empty_since_ns_ = 0, full_since_ns_ = 0;  // when last; 0: it never was, or in no frame that is left
  bool within_ = false;                                  // it was empty within the frame that is being read, a long one
  std::uint64_t written_ = 0;                            // when it was taken last
  std::uint64_t empty_at_ = 0, full_at_ = 0;
  fault::Arrivals seen_;
};

}  // namespace gccl::tcp
