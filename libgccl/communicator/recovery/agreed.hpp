// What ranks agree on while they shrink, as flags of which each rank gives some and all get the AND. Those that are
// left are in calls k to k + 2: a rank that returned from k may have been handed k + 1 back, for which nobody waits. So
// calls are distinguished by their numbers modulo 8. Bit 0 is Recovery::shrink's.
#pragma once

#include <cstdint>

namespace gccl {

struct Agreed {
  // All have completed it.
  static std::uint64_t completed(std::uint32_t call) { return std::uint64_t(2) << call % 8; }
  // Nobody is in it.
  static std::uint64_t empty(std::uint32_t call) { return completed(call) << 8; }
  // The flags of a rank that is in `call`, and has completed it or not.
  static std::uint64_t flags(std::uint32_t call, bool done) {
    return ~(completed(call + 1) | completed(call + 2) | empty(call) | (done ? 0 : completed(call)));
  }
  // The last call that any of them is in, for one that is in `call`.
  static std::uint32_t furthest(std::uint64_t flags, std::uint32_t call) {
    return !(flags & empty(call + 2)) ? call + 2 : !(flags & empty(call + 1)) ? call + 1 : call;
  }
};

}  // namespace gccl
