#include "libgccl/transports/tcp/settings.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include "gccl/gccl.h"
#include "libgccl/net/socket.hpp"

namespace gccl::tcp {
namespace {

// Loopback: 0.5 to 2 MiB are as fast as each other; 256 KiB costs a quarter more time at 16 MiB, the default a third.
constexpr int kLoopbackBufferBytes = 2 << 20;
// A path's bandwidth times its round trip must fit; receive buffers grow by themselves (up to tcp_rmem), which beats
// any fixed size.
constexpr int kSendBufferBytes = 4 << 20;

// Keep-alive counts in seconds.
constexpr std::int64_t kPeerTimeoutMin_ms = 2000, kPeerTimeoutMax_ms = 86400000;
constexpr int kProbes = 8;
constexpr std::int64_t kLinkLostMax_ms = 86400000, kLinkSlowMax = 1000;

constexpr std::size_t kCongestionNameBytes = 16;  // the system's TCP_CA_NAME_MAX, with the 0 at the end

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

int set_congestion(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), socklen_t(name.size()));
}

// The system knows it, and lets this user have it.
Status check_congestion(const std::string& name) {
  if (name.empty()) return {};
  const Fd probe = not_for_children([] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  if (!probe) return system_error("cannot make a socket", errno);
  // What is longer the system would cut.
  if (name.size() < kCongestionNameBytes && set_congestion(probe.get(), name) == 0) return {};
  std::string known;
  std::getline(std::ifstream("/proc/sys/net/ipv4/tcp_allowed_congestion_control"), known);
  return Status::error(fmt::format("GCCL_TCP_CONGESTION=\"{}\": expected a congestion control that this machine allows "
                                   "({}), or nothing for the system's",
                                   name, known.empty() ? "sysctl net.ipv4.tcp_allowed_congestion_control" : known),
                       GCCL_ERR_INVALID_ARGUMENT);
}

}  // namespace

Status read_settings(const Environment& environment, Settings* out) {
  const Environment given = without_empty(environment);
  bool found = false;
  std::int64_t number = 0;
  if (Status s = read_number(given, "GCCL_TCP_STREAMS", 1, Settings::kStreamsMax, &number, &found); !s.ok()) return s;
  if (found) out->streams = unsigned(number);
  if (Status s =
          read_number(given, "GCCL_TCP_PEER_TIMEOUT_MS", kPeerTimeoutMin_ms, kPeerTimeoutMax_ms, &number, &found);
      !s.ok())
    return s;
  if (found) out->peer_timeout = std::chrono::milliseconds(number);
  if (Status s = read_number(given, "GCCL_LINK_LOST_MS", 0, kLinkLostMax_ms, &number, &found); !s.ok()) return s;
  if (found) out->link_lost = std::chrono::milliseconds(number);
  if (Status s = read_number(given, "GCCL_LINK_CHECK", 0, 1, &number, &found); !s.ok()) return s;
  if (found) out->checks = number == 1;
  if (Status s = read_number(given, "GCCL_LINK_SLOW", 0, kLinkSlowMax, &number, &found); !s.ok()) return s;
  if (found) out->watches = number > 0;
  if (const char* text = environment("GCCL_TCP_CONGESTION")) {  // an empty one is a choice: the system's
    out->congestion = text;
    if (Status s = check_congestion(*out->congestion); !s.ok()) return s;
  }
  if (const char* text = given("GCCL_TCP_ZEROCOPY")) {
    const std::string_view t = text;
    if (t == "0") {
      out->zero_copy = Settings::ZeroCopyUse::never;
    } else if (t == "1") {
      out->zero_copy = Settings::ZeroCopyUse::always;
    } else if (t != "auto") {
      return Status::error(fmt::format("GCCL_TCP_ZEROCOPY=\"{}\": expected 0, 1 or auto", text),
                           GCCL_ERR_INVALID_ARGUMENT);
    }
  }
  return {};
}

// Idle for a third of the limit, then up to kProbes probes. Linux sends them only while nothing is unacknowledged;
// vanished() covers the rest. TCP_USER_TIMEOUT would also end connections to a rank that computes for long and lets its
// buffers fill.
void keep_alive(int fd, const Settings& settings) {
  const int limit_s = int(settings.peer_timeout / std::chrono::seconds(1));
  const int idle_s = std::max(1, limit_s / 3), interval_s = std::max(1, (limit_s - idle_s) / kProbes);
  gccl::keep_alive(fd, idle_s, interval_s, std::max(1, (limit_s - idle_s) / interval_s));
}

bool vanished(int fd, const Settings& settings) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  // Retransmissions, or probes of a window that is closed, that nothing came back for. A probe that has just been sent
  // proves nothing; the second one follows when the first stayed without an answer.
  const bool owes = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) || info.tcpi_probes >= 2;
  return owes && std::chrono::milliseconds(info.tcpi_last_ack_recv) > settings.peer_timeout;
}

void set_up(int fd, const Settings& settings) {
  std::string congestion = settings.congestion.value_or("");
  if (stays_on_host(fd)) {
    if (!settings.congestion) congestion = "cubic";
    set(fd, SOL_SOCKET, SO_SNDBUF, kLoopbackBufferBytes);
    set(fd, SOL_SOCKET, SO_RCVBUF, kLoopbackBufferBytes);
  } else {
    set(fd, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  }
  if (!congestion.empty()) set_congestion(fd, congestion);
  keep_alive(fd, settings);
}

bool stays_on_host(int fd) {
  const SocketAddress local = SocketAddress::local_end(fd), remote = SocketAddress::remote_end(fd);
  return remote.is_loopback() || (remote.valid() && local.with_port(0) == remote.with_port(0));
}

}  // namespace gccl::tcp
