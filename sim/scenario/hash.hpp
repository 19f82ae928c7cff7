// A hash for seeded choices: the same numbers on every platform and standard library.
#pragma once

#include <cstdint>

namespace gccl::sim {

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: splitmix64's finaliser.
constexpr std::uint64_t hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
constexpr std::uint64_t hash(std::uint64_t a, std::uint64_t b) { return hash(hash(a) ^ b); }

}  // namespace gccl::sim
