#include "libgccl/transports/shm/memory_of_peer.hpp"

#include <sys/uio.h>

#include <cstring>

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

}  // namespace gccl::shm
