#include "libgccl/backends/tcp/settings.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
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

// A vanished machine is noticed after kIdle + kProbes * kInterval seconds. TCP_USER_TIMEOUT would also end connections
// to a rank that computes for long and lets its buffers fill.
constexpr int kIdle_s = 20, kInterval_s = 5, kProbes = 8;

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

}  // namespace

Status read_settings(Settings* out) {
  if (const char* text = std::getenv("GCCL_TCP_STREAMS"); text && *text) {
    char* end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (*end || n < 1 || n > long(Settings::kStreamsMax))
      return Status::error("GCCL_TCP_STREAMS=\"" + std::string(text) + "\": expected a number from 1 to " +
                               std::to_string(Settings::kStreamsMax),
                           GCCL_ERR_INVALID_ARGUMENT);
    out->streams = unsigned(n);
  }
  if (const char* text = std::getenv("GCCL_TCP_CONGESTION")) out->congestion = text;
  if (const char* text = std::getenv("GCCL_TCP_ZEROCOPY"); text && *text) {
    const std::string_view t = text;
    if (t == "0") {
      out->zero_copy = Settings::ZeroCopyUse::never;
    } else if (t == "1") {
      out->zero_copy = Settings::ZeroCopyUse::always;
    } else if (t != "auto") {
      return Status::error("GCCL_TCP_ZEROCOPY=\"" + std::string(text) + "\": expected 0, 1 or auto",
                           GCCL_ERR_INVALID_ARGUMENT);
    }
  }
  return {};
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
  if (!congestion.empty()) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion.data(), socklen_t(congestion.size()));
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdle_s);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kInterval_s);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

bool stays_on_host(int fd) {
  const SocketAddress local = SocketAddress::local_end(fd), remote = SocketAddress::remote_end(fd);
  return remote.is_loopback() || (remote.valid() && local.with_port(0) == remote.with_port(0));
}

}  // namespace gccl::tcp
