// SplitMix64: a hash and a generator with the same numbers on every platform and standard library.
// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cstdint>
#include <string_view>

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

// A text's hash: each character goes through all that came before it.
constexpr std::uint64_t text_hash(std::string_view text) {
  std::uint64_t h = 0;
  for (const char c : text) h = hash(h ^ std::uint8_t(c));
  return h;
}

class Generator {
 public:
  constexpr explicit Generator(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() { return mix(state_ += kGolden); }
  // 0 .. n-1
  constexpr std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

}  // namespace gccl::splitmix
