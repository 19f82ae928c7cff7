#include "sim/scenario/digest.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "libgccl/base/splitmix.hpp"

namespace gccl::sim {

// Two hashes of the same text that begin differently.
std::string digest(std::string_view text) {
  std::uint64_t a = 0x243f6a8885a308d3, b = 0x13198a2e03707344;
  for (const char c : text) {
    a = splitmix::hash(a ^ std::uint8_t(c));
    b = splitmix::hash(b + std::uint8_t(c) + 1);
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

}  // namespace gccl::sim
