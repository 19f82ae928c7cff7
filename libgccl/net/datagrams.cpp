#include "libgccl/net/datagrams.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace gccl {

Status Datagrams::open(const std::string& address, bool have_secret, std::unique_ptr<Datagrams>* out) {
  auto d = std::make_unique<Datagrams>();
  SocketAddress where;
  if (Status s = listening_address(address, have_secret, &where); !s.ok()) return s;
  d->fd_ = not_for_children([&] { return ::socket(where.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!d->fd_) return system_error("a datagram socket", errno);
  if (::bind(d->fd_.get(), where.data(), where.bytes()) != 0) return system_error("bind to " + where.text(), errno);
  d->address_ = SocketAddress::local_end(d->fd_.get());
  *out = std::move(d);
  return {};
}

void Datagrams::send(const SocketAddress& to, std::span<const std::byte> bytes) const {
  assert(bytes.size() <= kBytesMax);
  Digest mac;
  if (!to.valid() || !hmac_sha256(key_, bytes, &mac)) return;
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  all.insert(all.end(), mac.begin(), mac.end());
  // What does not leave is sent again, as what is lost is.
  (void)::sendto(fd_.get(), all.data(), all.size(), MSG_NOSIGNAL, to.data(), to.bytes());
}

bool Datagrams::receive(std::vector<std::byte>* bytes) {
  for (;;) {
    bytes->resize(kBytesMax + sizeof(Digest));
    const ssize_t size = ::recv(fd_.get(), bytes->data(), bytes->size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (size < ssize_t(sizeof(Digest))) continue;  // an error is another datagram's, of which ICMP has told
    bytes->resize(std::size_t(size));
    Digest mac;
    const std::size_t content = bytes->size() - sizeof mac;
    if (!hmac_sha256(key_, std::span(*bytes).first(content), &mac)) return false;
    unsigned different = 0;  // in the same time, whatever differs
    for (std::size_t i = 0; i < sizeof mac; ++i) different |= unsigned(mac[i] ^ (*bytes)[content + i]);
    if (different != 0) continue;
    bytes->resize(content);
    return true;
  }
}

}  // namespace gccl
