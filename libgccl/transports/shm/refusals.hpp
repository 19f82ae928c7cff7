// How much shared memory was refused when a port last asked for it, so that calls that can do without it do not ask the
// system each time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libgccl/transports/shm/pipe.hpp"

namespace gccl::shm {

class Refusals {
 public:
  // Whether to ask for so much: one in 64 times where it, or less, was refused.
  bool may_ask(std::uint32_t how_much) { return how_much < least_ || ++asked_[how_much] % kAskedAgain == 0; }
  void answered(std::uint32_t how_much, int error) {
    least_ = error ? std::min(least_, how_much) : std::max(least_, how_much + 1);
  }

 private:
  static constexpr std::uint32_t kAskedAgain = 64;
  std::uint32_t least_ = kReservedChunks + 1;  // Reserved: so much, and more, was refused
  std::uint32_t asked_[kReservedChunks + 1] = {};
};

}  // namespace gccl::shm
