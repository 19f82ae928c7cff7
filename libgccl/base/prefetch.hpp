// Asks for memory that will be needed soon.
#pragma once

#include <cstddef>

namespace gccl {

// The cache lines of so many bytes. Callers that do nothing else are to be inlined always, as this is: g++ 12 takes
// such a function for one without effect and drops its calls.
[[gnu::always_inline]] inline void prefetch(const void* at, std::size_t bytes = 1) {
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(at) + i);
}

}  // namespace gccl
