#include "cli/launch/port.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "libgccl/base/system_refused.hpp"

namespace gccl::launch {

Fd reserve_port(std::uint16_t* port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const SocketAddress any = SocketAddress::loopback(0);
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(fd.get(), any.data(), any.bytes()) != 0)
    throw SystemRefused(
        fmt::format("launch: cannot reserve a loopback port: {}", std::generic_category().message(errno)));
  *port = SocketAddress::local_end(fd.get()).port();
  return fd;
}

}  // namespace gccl::launch
