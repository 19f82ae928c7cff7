// What a rank tells the others of itself for the case that some fail (recovery.hpp).
#pragma once

#include "libgccl/base/other_process.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

struct Contact {
  OtherProcess process;
  SocketAddress::Wire address{};  // for datagrams
  char none[80] = {};             // why it has no such address, shortened; empty where it has one
};

}  // namespace gccl
