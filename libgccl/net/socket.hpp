// TCP sockets: descriptors that close themselves, addresses, listening, dialling. IPv4 and IPv6 alike.
//
// Nothing here waits, name resolution apart. Every descriptor is non-blocking, and closed on exec and in children.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libgccl/base/descriptor.hpp"
#include "libgccl/base/process.hpp"
#include "libgccl/base/status.hpp"

namespace gccl {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  // -1 when there is none.
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // The caller closes it from now on.
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// What make() returns, a descriptor or -1 with errno, above the standard streams (base/descriptor.hpp). Children that
// fork() makes close it (base/process.hpp).
template <class Make>
Fd not_for_children(Make make) {
  const ProcessLock lock;
  Fd fd(above_standard_streams(make()));
  if (fd) keep_from_children(fd.get());
  return fd;
}

// "HOST:PORT" taken apart; an IPv6 host stands in brackets: "[::1]:29500".
struct HostPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
// The port must be a number from 1 to 65535. GCCL_ERR_INVALID_ARGUMENT says what was expected.
Status parse_host_port(std::string_view text, HostPort* out);

// An IP address and a port.
class SocketAddress {
 public:
  // How an address travels between ranks: family, port, scope, address; all zero for none.
  static constexpr std::size_t kWireBytes = 24;
  using Wire = std::array<std::byte, kWireBytes>;

  SocketAddress() = default;  // of no family: !valid()
  SocketAddress(const sockaddr* address, socklen_t bytes);
  // 127.0.0.1, or ::1; and the address that stands for all of the machine's.
  static SocketAddress loopback(std::uint16_t port, int family = AF_INET);
  static SocketAddress any(std::uint16_t port, int family = AF_INET);
  // A numeric address without brackets ("10.0.0.1", "fe80::1%eth0"); invalid when the text is none.
  static SocketAddress numeric(const std::string& host, std::uint16_t port);
  // The two ends of a connected or listening socket; invalid when it has none.
  static SocketAddress local_end(int fd);
  static SocketAddress remote_end(int fd);
  // Any bytes: what is not an address gives an invalid one. An IPv6 scope only means something on the machine it is
  // from.
  static SocketAddress from_wire(const Wire& wire);
  Wire wire() const;

  bool valid() const { return family() != AF_UNSPEC; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  SocketAddress with_port(std::uint16_t port) const;
  bool is_loopback() const;  // 127.0.0.0/8, ::1, and the former written as IPv6
  bool is_any() const;       // 0.0.0.0, ::
  bool is_link_local() const;
  // For sockets that take both: an IPv4 address written as IPv6 ("::ffff:10.0.0.1"), an IPv6 one as it is.
  SocketAddress as_ipv6() const;
  // "10.0.0.1", "fe80::1%eth0"; with the port "10.0.0.1:29500", "[fe80::1%eth0]:29500". "?" when invalid.
  std::string host() const;
  std::string text() const;

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t bytes() const;
  friend bool operator==(const SocketAddress& a, const SocketAddress& b) { return a.wire() == b.wire(); }

 private:
  sockaddr_storage storage_{};
};

// A numeric address or a host name, by the system's resolver. May wait as long as that does. Never empty on success.
Status resolve(const std::string& host, std::uint16_t port, std::vector<SocketAddress>* out);

// The addresses of this machine's interfaces that are up, with port 0: IPv4 first, then IPv6, link-local ones last,
// loopback not among them. With a name, those of the interface of that name alone, loopback included.
std::vector<SocketAddress> interface_addresses(const std::string& name = {});

// Where a rank listens for peers, over TCP and UDP alike, and where they find it; all with port 0.
struct ListeningPlace {
  static constexpr std::size_t kAddressesMax = 9;

  std::vector<SocketAddress> binds;      // to be tried in this order
  std::vector<SocketAddress> addresses;  // at most kAddressesMax, loopback last; empty: what was bound
  std::size_t left_out = 0;              // more that this machine has

  // For peers, of a socket that is bound there.
  std::vector<SocketAddress> published(int fd) const;
};

// Of more addresses than `most` the first ones. The last of these is the first of the other family's, where the others
// are all of one.
std::vector<SocketAddress> first_of(std::vector<SocketAddress> all, std::size_t most);

// `wanted` is a numeric address, an interface name, or empty: then 127.0.0.1, or everywhere where there is a secret.
// "0.0.0.0" means everywhere over IPv4, "::" over both. GCCL_ERR_INVALID_ARGUMENT: what is neither an address nor an
// interface with one; without a secret, more than loopback; a link-local IPv6 address, whose scope is not the peers'.
Status listening_place(const std::string& wanted, bool have_secret, ListeningPlace* out);

// Listens on the address (port 0: any free one; local_end() says which) with SO_REUSEADDR. `any(port, AF_INET6)` takes
// IPv4 too. The queue is as long as the system allows: a whole job may dial at once. `error`: the errno of a failure.
Status listen_on(const SocketAddress& address, Fd* out, int* error = nullptr);

Status listen_on(const ListeningPlace& place, Fd* out);

// Takes one waiting connection from a listener, TCP_NODELAY set. Success without one: *out is empty. A connection that
// died in the queue is passed over.
Status accept_from(int listener, Fd* out, SocketAddress* peer);

// Begins to connect, with TCP_NODELAY. When the socket becomes writable, dialled() says what came of it.
// `error`, here and below, where it is wanted: the errno of a connection that failed.
Status dial(const SocketAddress& address, Fd* out, int* error = nullptr);
// GCCL_ERR_PEER_LOST when the connection failed: the text begins with the peer's address. A socket that the kernel has
// connected to itself (it happens when nobody listens on a port of the ephemeral range) counts as refused.
Status dialled(int fd, const SocketAddress& address, int* error = nullptr);

Status set_nodelay(int fd);
// A connection on which nothing was heard for idle_s seconds, nor of so many probes, ends.
void keep_alive(int fd, int idle_s, int interval_s, int probes);

// Raises the limit of open descriptors in the process to this many, as far as the hard limit allows (RLIMIT_NOFILE).
void allow_descriptors(std::size_t count);

// GCCL_ERR_SYSTEM: "WHAT: strerror(error)", and where descriptors are short which limit they have met.
Status system_error(const std::string& what, int error);

}  // namespace gccl
