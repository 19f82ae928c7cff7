#include "libgccl/base/copy_past_caches.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gccl {

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
#if defined(__x86_64__)
  auto* t = static_cast<std::byte*>(to);
  auto* f = static_cast<const std::byte*>(from);
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(t) % 64) % 64;
  if (bytes < 256 + head) {
    std::memcpy(t, f, bytes);
    return;
  }
  std::memcpy(t, f, head);
  t += head, f += head, bytes -= head;
  for (; bytes >= 64; t += 64, f += 64, bytes -= 64)  // whole lines: partial ones would be written twice
    for (int i = 0; i < 64; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(t + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(f + i)));
  _mm_sfence();
  std::memcpy(t, f, bytes);
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace gccl
