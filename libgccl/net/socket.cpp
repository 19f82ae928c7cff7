#include "libgccl/net/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

#include "gccl/gccl.h"

namespace gccl {
namespace {

// Of this process or this machine, and none of an address.
bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS; }

const sockaddr_in& v4(const sockaddr_storage& s) { return reinterpret_cast<const sockaddr_in&>(s); }
sockaddr_in& v4(sockaddr_storage& s) { return reinterpret_cast<sockaddr_in&>(s); }
const sockaddr_in6& v6(const sockaddr_storage& s) { return reinterpret_cast<const sockaddr_in6&>(s); }
sockaddr_in6& v6(sockaddr_storage& s) { return reinterpret_cast<sockaddr_in6&>(s); }

SocketAddress of(const sockaddr_storage& storage, socklen_t bytes) {
  return {reinterpret_cast<const sockaddr*>(&storage), bytes};
}

Fd new_socket(int family) {
  return not_for_children([family] { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}
constexpr const char* kNoSocket = "cannot make a socket";

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close_descriptor(std::exchange(fd_, -1));
}

int Fd::release() {
  forget_descriptor(fd_);
  return std::exchange(fd_, -1);
}

Status system_error(const std::string& what, int error) {
  const char* const limit = error == EMFILE ? " (see ulimit -n)" : error == ENFILE ? " (see sysctl fs.file-max)" : "";
  return Status::error(fmt::format("{}: {}{}", what, std::generic_category().message(error), limit), GCCL_ERR_SYSTEM);
}

Status parse_host_port(std::string_view text, HostPort* out) {
  const std::string found = fmt::format("\"{}\"", text);
  std::string_view host, port;
  if (text.starts_with("[")) {
    const std::size_t end = text.find(']');
    if (end == text.npos || !text.substr(end + 1).starts_with(":"))
      return invalid(fmt::format("{}: expected \"[IPv6 address]:PORT\"", found));
    host = text.substr(1, end - 1), port = text.substr(end + 2);
  } else {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) return invalid(fmt::format("{}: expected \"HOST:PORT\", the port is missing", found));
    host = text.substr(0, colon), port = text.substr(colon + 1);
    if (host.find(':') != host.npos)
      return invalid(fmt::format("{}: expected an IPv6 address in brackets, as in \"[::1]:29500\"", found));
  }
  if (host.empty()) return invalid(fmt::format("{}: expected \"HOST:PORT\", the host is missing", found));
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || error != std::errc() || end != port.data() + port.size() || number == 0)
    return invalid(fmt::format("{}: expected a port from 1 to 65535 behind the last colon", found));
  out->host = host, out->port = number;
  return {};
}

SocketAddress::SocketAddress(const sockaddr* address, socklen_t bytes) {
  if (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in))
    std::memcpy(&storage_, address, sizeof(sockaddr_in));
  else if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6))
    std::memcpy(&storage_, address, sizeof(sockaddr_in6));
  // Written as IPv6 ("::ffff:10.0.0.1"), as by sockets that take both: the IPv4 address that it is.
  if (const in6_addr a = v6(storage_).sin6_addr; family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a)) {
    const in_port_t port = v6(storage_).sin6_port;
    storage_ = {};
    storage_.ss_family = AF_INET;
    v4(storage_).sin_port = port;
    std::memcpy(&v4(storage_).sin_addr, &a.s6_addr[12], 4);
  }
}

SocketAddress SocketAddress::any(std::uint16_t port, int family) {
  SocketAddress a;  // all zero is the address meant
  a.storage_.ss_family = sa_family_t(family);
  return a.with_port(port);
}

SocketAddress SocketAddress::loopback(std::uint16_t port, int family) {
  SocketAddress a = any(port, family);
  if (family == AF_INET6)
    v6(a.storage_).sin6_addr = in6addr_loopback;
  else
    v4(a.storage_).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

SocketAddress SocketAddress::numeric(const std::string& host, std::uint16_t port) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  const SocketAddress found(list->ai_addr, list->ai_addrlen);
  freeaddrinfo(list);
  return found.with_port(port);
}

SocketAddress SocketAddress::local_end(int fd) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) == 0 ? of(storage, bytes) : SocketAddress();
}

SocketAddress SocketAddress::remote_end(int fd) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) == 0 ? of(storage, bytes) : SocketAddress();
}

// Wire: family (4 or 6) | 0 | port, big-endian | scope, big-endian, IPv6 only | 16 bytes of address.
SocketAddress::Wire SocketAddress::wire() const {
  Wire wire{};
  if (family() == AF_INET) {
    wire[0] = std::byte(4);
    std::memcpy(&wire[2], &v4(storage_).sin_port, 2);
    std::memcpy(&wire[8], &v4(storage_).sin_addr, 4);
  } else if (family() == AF_INET6) {
    wire[0] = std::byte(6);
    const std::uint32_t scope = htonl(v6(storage_).sin6_scope_id);
    std::memcpy(&wire[2], &v6(storage_).sin6_port, 2);
    std::memcpy(&wire[4], &scope, 4);
    std::memcpy(&wire[8], &v6(storage_).sin6_addr, 16);
  }
  return wire;
}

SocketAddress SocketAddress::from_wire(const Wire& wire) {
  SocketAddress a;
  if (wire[0] == std::byte(4)) {
    a.storage_.ss_family = AF_INET;
    std::memcpy(&v4(a.storage_).sin_port, &wire[2], 2);
    std::memcpy(&v4(a.storage_).sin_addr, &wire[8], 4);
  } else if (wire[0] == std::byte(6)) {
    std::uint32_t scope = 0;
    std::memcpy(&scope, &wire[4], 4);
    a.storage_.ss_family = AF_INET6;
    v6(a.storage_).sin6_scope_id = ntohl(scope);
    std::memcpy(&v6(a.storage_).sin6_port, &wire[2], 2);
    std::memcpy(&v6(a.storage_).sin6_addr, &wire[8], 16);
  }
  return a;
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(v4(storage_).sin_port);
  return family() == AF_INET6 ? ntohs(v6(storage_).sin6_port) : 0;
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress a = *this;
  if (family() == AF_INET) v4(a.storage_).sin_port = htons(port);
  if (family() == AF_INET6) v6(a.storage_).sin6_port = htons(port);
  return a;
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return ntohl(v4(storage_).sin_addr.s_addr) >> 24 == 127;
  if (family() != AF_INET6) return false;
  const in6_addr& a = v6(storage_).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127);
}

bool SocketAddress::is_any() const {
  if (family() == AF_INET) return v4(storage_).sin_addr.s_addr == 0;
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6(storage_).sin6_addr);
}

bool SocketAddress::is_link_local() const {
  if (family() == AF_INET) return ntohl(v4(storage_).sin_addr.s_addr) >> 16 == 0xa9fe;  // 169.254.0.0/16
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(storage_).sin6_addr);
}

SocketAddress SocketAddress::as_ipv6() const {
  if (family() != AF_INET) return *this;
  SocketAddress a = any(port(), AF_INET6);
  v6(a.storage_).sin6_addr.s6_addr[10] = v6(a.storage_).sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&v6(a.storage_).sin6_addr.s6_addr[12], &v4(storage_).sin_addr, 4);
  return a;
}

std::string SocketAddress::host() const {
  char text[NI_MAXHOST];
  if (!valid() || getnameinfo(data(), bytes(), text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return text;
}

std::string SocketAddress::text() const {
  if (!valid()) return "?";
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host(), port()) : fmt::format("{}:{}", host(), port());
}

socklen_t SocketAddress::bytes() const {
  if (family() == AF_INET) return sizeof(sockaddr_in);
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

Status resolve(const std::string& host, std::uint16_t port, std::vector<SocketAddress>* out) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0)
    return Status::error(
        fmt::format("host \"{}\": {}", host,
                    error == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(error)),
        GCCL_ERR_SYSTEM);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(list, freeaddrinfo);
  out->clear();
  for (const addrinfo* i = list; i; i = i->ai_next)
    if (const SocketAddress a(i->ai_addr, i->ai_addrlen); a.valid()) out->push_back(a.with_port(port));
  return out->empty() ? Status::error(fmt::format("host \"{}\": no IP address", host), GCCL_ERR_SYSTEM) : Status();
}

std::vector<SocketAddress> interface_addresses(const std::string& name) {
  std::vector<SocketAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(list, freeifaddrs);
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (!name.empty() && name != i->ifa_name)) continue;
    const SocketAddress a(i->ifa_addr, i->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (a.valid() && (!name.empty() || !a.is_loopback())) found.push_back(a.with_port(0));
  }
  const auto worth = [](const SocketAddress& a) { return 2 * a.is_link_local() + (a.family() == AF_INET6); };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
  return found;
}

std::vector<SocketAddress> ListeningPlace::published(int fd) const {
  const SocketAddress bound = SocketAddress::local_end(fd);
  if (addresses.empty()) return {bound};
  std::vector<SocketAddress> list;
  for (const SocketAddress& a : addresses) list.push_back(a.with_port(bound.port()));
  return list;
}

std::vector<SocketAddress> first_of(std::vector<SocketAddress> all, std::size_t most) {
  if (all.size() <= most) return all;
  const auto other = std::ranges::find_if(all, [&](const auto& a) { return a.family() != all[0].family(); });
  if (other - all.begin() >= std::ptrdiff_t(most) && other != all.end()) std::iter_swap(other, all.begin() + most - 1);
  all.resize(most);
  return all;
}

Status listening_place(const std::string& wanted, bool have_secret, ListeningPlace* out) {
  *out = {};
  SocketAddress at = SocketAddress::numeric(wanted, 0);
  if (wanted.empty() && !have_secret) {
    out->binds = {SocketAddress::loopback(0), SocketAddress::loopback(0, AF_INET6)};
    return {};
  }
  if (!wanted.empty() && !at.valid()) {
    const auto of_interface = interface_addresses(wanted);
    if (of_interface.empty())
      return invalid(fmt::format(
          "\"{}\": expected an IP address, or the name of a network interface that is up and has one", wanted));
    at = of_interface[0];
  }
  if (!have_secret && !at.is_loopback())
    return invalid(
        fmt::format("\"{}\" is reached from other machines, which takes a secret: set GCCL_SECRET or GCCL_SECRET_FILE, "
                    "or use 127.0.0.1",
                    wanted));
  if (at.family() == AF_INET6 && at.is_link_local())
    return invalid(
        fmt::format("\"{}\" is a link-local IPv6 address ({}), whose scope is this machine's: expected an address that "
                    "means the same to the other ranks",
                    wanted, at.host()));
  if (at.valid() && !at.is_any()) {
    out->binds = {at};
    return {};
  }
  const bool both = at.family() != AF_INET;
  if (both) out->binds.push_back(SocketAddress::any(0, AF_INET6));
  out->binds.push_back(SocketAddress::any(0));
  for (const SocketAddress& a : interface_addresses())
    if (!a.is_link_local() && (both || a.family() == AF_INET)) out->addresses.push_back(a);
  const std::size_t all = out->addresses.size();
  out->addresses = first_of(std::move(out->addresses), ListeningPlace::kAddressesMax - 1);
  out->left_out = all - out->addresses.size();
  out->addresses.push_back(SocketAddress::loopback(0));
  return {};
}

Status listen_on(const ListeningPlace& place, Fd* out) {
  Status s;
  for (const SocketAddress& a : place.binds)
    if ((s = listen_on(a, out)).ok()) break;
  return s;
}

Status listen_on(const SocketAddress& address, Fd* out, int* error) {
  const auto failed = [error](const std::string& what, int number) {
    if (error) *error = number;
    return system_error(what, number);
  };
  Fd fd = new_socket(address.family());
  if (!fd) return failed(kNoSocket, errno);
  const int yes = 1, no = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family() == AF_INET6 && address.is_any()) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(fd.get(), address.data(), address.bytes()) != 0 || listen(fd.get(), 65535) != 0)
    return failed("cannot listen on " + address.text(), errno);
  *out = std::move(fd);
  return {};
}

Status accept_from(int listener, Fd* out, SocketAddress* peer) {
  out->reset();
  for (;;) {
    sockaddr_storage storage{};
    socklen_t bytes = sizeof storage;
    Fd fd = not_for_children(
        [&] { return accept4(listener, reinterpret_cast<sockaddr*>(&storage), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (fd) {
      *peer = of(storage, bytes);
      if (!set_nodelay(fd.get()).ok()) continue;  // reset already
      *out = std::move(fd);
      return {};
    }
    switch (errno) {
      case EAGAIN: return {};
      case EINTR:
      // accept(2): what went wrong on this one connection shows up here.
      case ECONNABORTED:
      case EPROTO:
      case ENETDOWN:
      case ENOPROTOOPT:
      case EHOSTDOWN:
      case ENONET:
      case EHOSTUNREACH:
      case ENETUNREACH: continue;
      default: return system_error("cannot take a connection", errno);
    }
  }
}

Status dial(const SocketAddress& address, Fd* out, int* error) {
  Fd fd = new_socket(address.family());
  if (!fd) {
    const int why = errno;
    if (is_shortage(why)) return system_error(kNoSocket, why);
    // As on a machine without IPv6: it may reach another address.
    return Status::error(fmt::format("{}: {}", address.text(), std::generic_category().message(why)),
                         GCCL_ERR_PEER_LOST);
  }
  if (Status s = set_nodelay(fd.get()); !s.ok()) return s;
  if (connect(fd.get(), address.data(), address.bytes()) != 0 && errno != EINPROGRESS && errno != EINTR) {
    if (error) *error = errno;
    return Status::error(fmt::format("{}: {}", address.text(), std::generic_category().message(errno)),
                         GCCL_ERR_PEER_LOST);
  }
  *out = std::move(fd);
  return {};
}

Status dialled(int fd, const SocketAddress& address, int* failure) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  const SocketAddress remote = SocketAddress::remote_end(fd);
  if (error == 0 && !remote.valid()) error = ENOTCONN;
  if (error == 0 && remote == SocketAddress::local_end(fd)) error = ECONNREFUSED;
  if (error == 0) return {};
  if (failure) *failure = error;
  return Status::error(fmt::format("{}: {}", address.text(), std::generic_category().message(error)),
                       GCCL_ERR_PEER_LOST);
}

Status set_nodelay(int fd) {
  const int yes = 1;
  return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 ? Status()
                                                                         : system_error("TCP_NODELAY", errno);
}

void keep_alive(int fd, int idle_s, int interval_s, int probes) {
  const auto set = [fd](int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set(IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
}

void allow_descriptors(std::size_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace gccl
