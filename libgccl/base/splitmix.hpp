// SplitMix64: a hash and a generator with the same numbers on every platform and standard library.
// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cstdint>

namespace gccl::splitmix {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: the generator's step

// The finaliser: every bit of x changes about half of the result's.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The first number of the generator with that seed.
constexpr std::uint64_t hash(std::uint64_t seed) { return mix(seed + kGolden); }

}  // namespace gccl::splitmix
