#include "libgccl/transports/tcp/data/stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace gccl::tcp {

void ReadAhead::drop(std::size_t n) {
  assert(n <= size());
  begin_ += n;
  if (begin_ == end_) begin_ = end_ = 0;
}

void ReadAhead::grew(std::size_t n) {
  assert(n <= bytes_.size() - end_);  // of room()
  end_ += n;
}

std::span<std::byte> ReadAhead::room() {
  if (begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }
  return end_ >= kBytes ? std::span<std::byte>() : std::span(bytes_).subspan(end_, kBytes - end_);
}

void ReadAhead::append(std::span<const std::byte> more) {
  if (bytes_.size() < end_ + more.size()) bytes_.resize(end_ + more.size());
  std::copy(more.begin(), more.end(), bytes_.begin() + std::ptrdiff_t(end_));
  end_ += more.size();
}

namespace {

// Short frames are gathered here: one plain send is 0.1 us cheaper than two vectors.
constexpr std::size_t kGatherBytesMax = 1024;

// `bytes` of the payload at most.
ssize_t write_some(Stream* s, std::size_t bytes, bool zero_copy) {
  std::byte* const payload = static_cast<std::byte*>(s->sending->data) + s->offset;
  std::byte* const header = s->header + kFrameHeaderBytes - s->header_left;
  if (zero_copy) {
    // The header's memory is used again before the kernel lets go of it: it travels copied, ahead.
    if (s->header_left > 0) return send(s->fd.get(), header, s->header_left, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
    return s->zero_copy.send(s->fd.get(), payload, bytes, s->sending);
  }
  if (s->header_left == 0) return send(s->fd.get(), payload, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes <= kGatherBytesMax) {
    std::byte both[kFrameHeaderBytes + kGatherBytesMax];
    std::memcpy(both, header, s->header_left);
    if (bytes > 0) std::memcpy(both + s->header_left, payload, bytes);
    return send(s->fd.get(), both, s->header_left + bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  iovec parts[2] = {{header, s->header_left}, {payload, bytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return sendmsg(s->fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

IoResult write_frame(Stream* s, Visit* visit, int* error) {
  assert(s->sending && s->header_left <= kFrameHeaderBytes && s->offset + s->left <= s->sending->bytes);
  while (s->header_left + s->left > 0) {
    if (!visit->goes_on()) return IoResult::some;
    const std::uint64_t bytes = std::min(s->left, visit->bytes());
    const ssize_t n = write_some(s, bytes, s->zero_copy.pays(bytes));
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return IoResult::some;
      *error = errno;
      return IoResult::failed;
    }
    s->moved_bytes += std::uint64_t(n);
    const std::size_t of_header = std::min(std::size_t(n), s->header_left);
    s->header_left -= of_header;
    s->offset += std::uint64_t(n) - of_header;
    s->left -= std::uint64_t(n) - of_header;
    visit->written(std::uint64_t(n) - of_header);
  }
  return IoResult::all;
}

}  // namespace gccl::tcp
