// Which ranks a rank passes an abort on to.
#pragma once

#include <bit>
#include <cstdint>

#include "libgccl/transports/tcp/connect/port_inbox.hpp"

namespace gccl::tcp {

// In the binomial graph (Angskun, Bosilca and Dongarra, "Binomial graph: a scalable and fault-tolerant logical network
// topology", 2007): ranks a power of two apart. What each passes on to its neighbours reaches all, also where some of
// them have failed.
inline bool binomial_neighbours(const PortIdentity& self, std::uint32_t other) {
  const std::uint32_t up = (other + self.size - self.rank) % self.size, down = (self.size - up) % self.size;
  return std::has_single_bit(up) || std::has_single_bit(down);
}

}  // namespace gccl::tcp
