// Short texts that stand for long ones.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "libgccl/base/splitmix.hpp"

namespace gccl::sim {

// 128 bits of a text, in hexadecimal digits; not for secrets. Two hashes that begin differently.
inline std::string digest(std::string_view text) {
  std::uint64_t a = 0x243f6a8885a308d3, b = 0x13198a2e03707344;
  for (const char c : text) {
    a = splitmix::hash(a ^ std::uint8_t(c));
    b = splitmix::hash(b + std::uint8_t(c) + 1);
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

}  // namespace gccl::sim
