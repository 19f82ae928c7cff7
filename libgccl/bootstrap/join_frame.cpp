#include "libgccl/bootstrap/join_frame.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/wait_for.hpp"
#include "libgccl/net/bytes.hpp"

namespace gccl {
namespace {
constexpr std::string_view kJoinHello = "gccl-join/1";
}

std::vector<std::byte> JoinFrame::encoded() const {
  return BytesOut().u8(std::uint8_t(kind)).u32(std::uint32_t(bytes.size())).raw(bytes).take();
}

JoinFrameReader::State JoinFrameReader::read(int fd, JoinFrame* out) {
  for (;;) {
    std::byte piece[1024];
    const bool in_head = head_.size() < JoinFrame::kHeadBytes;
    const std::size_t left = in_head ? JoinFrame::kHeadBytes - head_.size() : bytes_.size() - done_;
    if (!in_head && left == 0) {
      out->kind = JoinFrame::Kind(head_[0]);
      out->bytes = std::move(bytes_);
      *this = {};
      return State::complete;
    }
    const ssize_t n = ::recv(fd, in_head ? piece : bytes_.data() + done_, left, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::incomplete;
    if (n <= 0) return State::closed;
    if (!in_head) {
      done_ += std::size_t(n);
      continue;
    }
    head_.insert(head_.end(), piece, piece + n);
    if (head_.size() < JoinFrame::kHeadBytes) continue;
    BytesIn in(head_);
    const std::uint8_t kind = in.u8();
    const std::uint32_t bytes = in.u32();
    if (kind < std::uint8_t(JoinFrame::Kind::introduction) || kind > std::uint8_t(JoinFrame::Kind::last) ||
        bytes > JoinFrame::kBytesMax)
      return State::closed;
    bytes_.resize(bytes);
  }
}

bool write_join_frame(int fd, const JoinFrame& frame, std::int64_t timeout_ms) {
  const std::vector<std::byte> bytes = frame.encoded();
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n >= 0) {
      done += std::size_t(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::vector<std::byte> JoinHello::encoded() const { return BytesOut().raw(kJoinHello).u32(version).raw(token).take(); }

bool JoinHello::parse(std::span<const std::byte> hello, JoinHello* out) {
  if (hello.size() != kJoinHello.size() + 4 + out->token.size() || !starts_with(hello, kJoinHello)) return false;
  BytesIn in(hello.subspan(kJoinHello.size()));
  out->version = in.u32();
  std::ranges::copy(in.raw(out->token.size()), out->token.begin());
  return true;
}

}  // namespace gccl
