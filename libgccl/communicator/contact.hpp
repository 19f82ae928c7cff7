// What a rank tells the others of itself for the case that some fail (recovery.hpp).
#pragma once

#include "libgccl/base/other_process.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

struct Contact {
  OtherProcess process;
  SocketAddress::Wire address{};  // for datagrams
};

}  // namespace gccl
