// What a rank says to the others of itself for the case that some fail (recovery.hpp).
#pragma once

#include "libgccl/base/other_process.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

struct Contact {
  OtherProcess process;
  std::uint64_t network = 0;                                       // of the network namespace, on its machine
  SocketAddress::Wire addresses[ListeningPlace::kAddressesMax]{};  // for datagrams; those behind the last are invalid
  std::int64_t detection_ms = 0;              // after so long a rank that is silent has failed; 0: never
  char none[80] = {};                         // why it has none, shortened; empty where it has one
  std::int32_t family = 0, second_error = 0;  // Datagrams

  // The system says what becomes of the other's process, and no cable lies between them.
  bool near(const Contact& o) const { return process.seen_from(o.process) && network == o.network; }
};

}  // namespace gccl
