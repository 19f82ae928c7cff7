#include "libgccl/transports/shm/memory_of_peer.hpp"

#include <sys/uio.h>

#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gccl::shm {

bool read_memory_of(std::uint32_t pid, std::uint64_t address, void* to, std::size_t bytes) {
  while (bytes > 0) {
    const iovec here{to, bytes};
    const iovec there{reinterpret_cast<void*>(address), bytes};
    const ssize_t n = ::process_vm_readv(pid_t(pid), &here, 1, &there, 1, 0);
    if (n <= 0) return false;
    to = static_cast<std::byte*>(to) + n;
    address += std::uint64_t(n);
    bytes -= std::size_t(n);
  }
  return true;
}

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

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

}  // namespace gccl::shm
