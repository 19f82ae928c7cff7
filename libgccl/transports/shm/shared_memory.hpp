// Memory of GCCL_Mem_alloc is files without a name. The machine's other ranks map them, and so read a zero-copy send as
// they read their own memory.
//
// process_vm_readv spends half a microsecond on each page; a mapping does not. A cell names the allocation, and the
// reader maps it through /proc/PID/fd: nobody registers or frees anything together. That asks for less than
// process_vm_readv does (PTRACE_MODE_READ, not ATTACH): Yama's ptrace_scope and containers' seccomp profiles refuse the
// latter alone. Ordinary memory is not turned into such memory: a forked child would write into its parent,
// and what other libraries have pinned would no longer be what the program sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libgccl/transports/shared_memory.hpp"

namespace gccl::shm {

inline constexpr std::uint64_t kStaging = ~std::uint64_t(0);

// Where other processes find a piece of memory.
struct SharedPlace {
  std::uint64_t number;  // of the allocation in its process, from 1; 0: it is in none; kStaging: its segment's staging
  std::uint64_t offset;
  std::uint64_t freed;  // how many allocations the owner has freed so far
  std::int32_t file;    // the owner's descriptor
  std::uint32_t inode;  // the file's number, its low 32 bits: whether /proc/PID/fd led to the right file
};
// number is 0 where the bytes do not all lie in one allocation.
SharedPlace shared_place(const void* data, std::size_t bytes);

// Whether that process's descriptor is of the same file as this one's, by the right that MappedPeer needs.
bool is_descriptor_of(std::uint32_t pid, int descriptor, int file);

// Another process's allocations, as far as they have been needed here.
class MappedPeer {
 public:
  // Where the piece is in this process; null where it cannot be mapped; errno. Stays until a place says that the owner
  // has freed it, or this object ends: call it for each message, also for one that is in no allocation. `pid` must be
  // known to be the owner's here; `owner` distinguishes the machine's processes.
  const std::byte* at(std::uint32_t pid, const std::string& owner, const SharedPlace& place, std::size_t bytes);

 private:
  struct Mapping;
  std::vector<std::shared_ptr<Mapping>> mapped_;
  std::uint64_t freed_ = 0;
};

}  // namespace gccl::shm
