#include "libgccl/net/datagrams.hpp"

#include <fmt/core.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace gccl {
namespace {

// 0, or errno.
int unbound(int family, Fd* out) {
  Fd fd = not_for_children([&] { return ::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!fd) return errno;
  const int yes = 1;  // where the system has it: as far as it goes
  (void)::setsockopt(fd.get(), IPPROTO_IP, IP_RECVERR, &yes, sizeof yes);
  if (family == AF_INET6) (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof yes);
  *out = std::move(fd);
  return 0;
}

Status bound(const SocketAddress& where, Fd* out) {
  Fd fd;
  if (const int error = unbound(where.family(), &fd); error != 0) return system_error("a datagram socket", error);
  const int no = 0;
  if (where.family() == AF_INET6 && where.is_any())
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(fd.get(), where.data(), where.bytes()) != 0)
    return system_error(fmt::format("bind to {}", where.text()), errno);
  *out = std::move(fd);
  return {};
}

// Of the socket's; invalid: none.
SocketAddress next_refused(int fd) {
  for (;;) {
    sockaddr_storage to{};
    alignas(cmsghdr) char control[512];
    msghdr m{};
    m.msg_name = &to;
    m.msg_namelen = sizeof to;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    if (::recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return {};
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
      if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
          !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
        continue;
      sock_extended_err e;
      std::memcpy(&e, CMSG_DATA(c), sizeof e);
      if (e.ee_errno == ECONNREFUSED) return {reinterpret_cast<const sockaddr*>(&to), m.msg_namelen};
    }
  }
}

}  // namespace

Status Datagrams::open(const std::string& address, bool have_secret, std::unique_ptr<Datagrams>* out) {
  auto d = std::make_unique<Datagrams>();
  ListeningPlace place;
  if (Status s = listening_place(address, have_secret, &place); !s.ok()) return s;
  Status s;
  for (const SocketAddress& where : place.binds)
    if ((s = bound(where, &d->fd_)).ok()) break;
  if (!s.ok()) return s;
  const SocketAddress at = SocketAddress::local_end(d->fd_.get());
  d->family_ = at.family();
  d->both_ = at.family() == AF_INET6 && at.is_any();
  d->addresses_ = place.published(d->fd_.get());
  if (!d->both_) d->second_error_ = unbound(d->family_ == AF_INET ? AF_INET6 : AF_INET, &d->second_);
  *out = std::move(d);
  return {};
}

bool Datagrams::reaches(const SocketAddress& to) const { return both_ || to.family() == family_; }

void Datagrams::send(const SocketAddress& to, std::span<const std::byte> bytes) const {
  assert(bytes.size() <= kBytesMax);
  Digest mac;
  if (!to.valid() || !hmac_sha256(key_, bytes, &mac)) return;
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  all.insert(all.end(), mac.begin(), mac.end());
  const SocketAddress there = both_ ? to.as_ipv6() : to;
  const int fd = reaches(to) ? fd_.get() : second_.get();
  // What does not leave is sent again, as what is lost is. The first error may be that of an earlier one.
  for (int i = 0; i < 2; ++i)
    if (::sendto(fd, all.data(), all.size(), MSG_NOSIGNAL, there.data(), there.bytes()) >= 0) return;
}

SocketAddress Datagrams::refused() {
  const SocketAddress a = next_refused(fd_.get());
  return a.valid() || !second_ ? a : next_refused(second_.get());
}

bool Datagrams::receive(std::vector<std::byte>* bytes, SocketAddress* from) {
  for (int forged = 0; forged < 64;) {
    bytes->resize(kBytesMax + sizeof(Digest));
    sockaddr_storage source{};
    socklen_t source_bytes = sizeof source;
    const ssize_t size =
        ::recvfrom(fd_.get(), bytes->data(), bytes->size(), 0, reinterpret_cast<sockaddr*>(&source), &source_bytes);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    ++forged;
    if (size < ssize_t(sizeof(Digest))) continue;  // an error is another datagram's, which ICMP has reported
    bytes->resize(std::size_t(size));
    Digest mac;
    const std::size_t content = bytes->size() - sizeof mac;
    if (!hmac_sha256(key_, std::span(*bytes).first(content), &mac)) return false;
    unsigned different = 0;  // in the same time, whatever differs
    for (std::size_t i = 0; i < sizeof mac; ++i) different |= unsigned(mac[i] ^ (*bytes)[content + i]);
    if (different != 0) continue;
    bytes->resize(content);
    *from = {reinterpret_cast<const sockaddr*>(&source), source_bytes};
    return true;
  }
  return false;
}

}  // namespace gccl
