// How many, and from which seed on: numbers that the environment gives tests which draw what they do.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gccl::test {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace gccl::test
