#include "libgccl/transports/shm/memory_of_peer.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "libgccl/base/other_process.hpp"

namespace gccl::shm {
namespace {

bool read_by(std::int32_t thread, std::uint64_t address, void* to, std::size_t bytes) {
  while (bytes > 0) {
    const iovec here{to, bytes};
    const iovec there{reinterpret_cast<void*>(address), bytes};
    const ssize_t n = ::process_vm_readv(thread, &here, 1, &there, 1, 0);
    if (n <= 0) return false;
    to = static_cast<std::byte*>(to) + n;
    address += std::uint64_t(n);
    bytes -= std::size_t(n);
  }
  return true;
}

// The system takes any thread's number, but none of a thread that has ended.
bool read_by_others(std::int32_t pid, std::uint64_t address, void* to, std::size_t bytes) {
  if (pid == ::getpid()) return read_by(std::int32_t(::syscall(SYS_gettid)), address, to, bytes);
  constexpr int kRounds = 4;  // one that ends may have started another, which is in no earlier list
  for (int round = 0; round < kRounds; ++round) {
    OtherThreads threads(pid);
    if (!threads.known()) return errno = EAGAIN, false;
    while (const std::int32_t thread = threads.next()) {
      const bool read = read_by(thread, address, to, bytes);
      const int error = errno;
      if ((!read && error == ESRCH) || !threads.has(thread)) continue;
      errno = error;
      return read;
    }
  }
  errno = ESRCH;
  return false;
}

}  // namespace

bool read_memory_of(std::uint32_t pid, std::uint64_t address, void* to, std::size_t bytes) {
  if (read_by(std::int32_t(pid), address, to, bytes)) return true;
  return errno == ESRCH && read_by_others(std::int32_t(pid), address, to, bytes);
}

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace gccl::shm
