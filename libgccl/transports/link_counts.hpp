// What a transport counts that makes connections anew.
#pragma once

#include <cstdint>

namespace gccl {

// Of one port: connections that broke and were made anew, and what was sent once more over them.
struct LinkCounts {
  std::uint64_t reconnects = 0, bytes_repeated = 0;
};

}  // namespace gccl
