// What a transport counts that makes connections anew.
#pragma once

#include <cstdint>

namespace gccl {

// Of one port: connections that broke and were made anew, and what was sent once more over them; frames that were
// damaged on their way.
struct LinkCounts {
  std::uint64_t reconnects = 0, bytes_repeated = 0, frames_damaged = 0;

  LinkCounts& operator+=(const LinkCounts& other) {
    reconnects += other.reconnects;
    bytes_repeated += other.bytes_repeated;
    frames_damaged += other.frames_damaged;
    return *this;
  }
};

}  // namespace gccl
