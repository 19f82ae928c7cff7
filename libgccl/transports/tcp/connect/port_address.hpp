// How a port is reached, as its 256 bytes say to the other ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/net/socket.hpp"

namespace gccl::tcp {

struct PortAddress {
  std::uint32_t world_rank = 0;
  std::uint64_t nonce = 0;               // the listener's
  std::uint64_t host = 0;                // the same on one machine and network namespace
  bool loopback_only = false;            // reached from there alone
  std::uint32_t left_out = 0;            // addresses of its machine's that are not among these
  std::vector<SocketAddress> addresses;  // to be tried in this order; at most kAddressesMax travel

  static constexpr std::size_t kAddressesMax = ListeningPlace::kAddressesMax;

  // Whether the two can exchange messages: symmetric.
  bool reaches(const PortAddress& other) const {
    return host == other.host || (!loopback_only && !other.loopback_only);
  }
  // What the owner of this address dials to reach the other: over loopback on one machine, never otherwise.
  std::vector<SocketAddress> candidates(const PortAddress& other) const;
};

// PortAddress::host where ranks name their machine so: those with the same text are on one machine, but those in
// different network namespaces do not share its loopback.
std::uint64_t host_number(const char* host);

// Into GCCL_BACKEND_ADDRESS_BYTES bytes.
void encode(const PortAddress& address, void* bytes);
// False for all zeros, the mark of a rank without this backend, and for what is no address. Any bytes will do.
bool decode(const void* bytes, PortAddress* address);

}  // namespace gccl::tcp
