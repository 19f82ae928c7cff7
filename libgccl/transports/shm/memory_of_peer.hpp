// Reading another process's memory in one copy, without its help. The other direction, a sender that writes into its
// receiver's memory, is not used, though two processors could then share a copy: a receiver that gives up could not
// take its buffer back from a sender that was stopped halfway.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gccl::shm {

// Copies `bytes` from `address` in process `pid`, whose main thread may have ended before others. False with errno when
// the system refuses (another user, a container without the right, Yama's ptrace_scope). ESRCH: it has ended, or is
// about to, with no memory any more. EAGAIN: it may be so, or its other threads cannot be found now.
bool read_memory_of(std::uint32_t pid, std::uint64_t address, void* to, std::size_t bytes);

// The C library's memcpy, never inlined: where GCC knows that a copy is below 8 KiB it makes `rep movs` of it, which
// takes twice as long for a kilobyte.
void copy(void* to, const void* from, std::size_t bytes);

}  // namespace gccl::shm
