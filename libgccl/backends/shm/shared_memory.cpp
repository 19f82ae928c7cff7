#include "libgccl/backends/shm/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "gccl/gccl.h"

namespace gccl::shm {
namespace {

struct Allocation {
  std::size_t bytes;
  std::uint32_t number;
  int file;
};

// What this process has allocated, by address.
struct Allocations {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> by_address;
  std::uint32_t last = 0, freed = 0;
};
Allocations& mine() {
  static auto* const all = new Allocations;  // outlives every static
  return *all;
}

Status refused(const char* what, std::size_t bytes) {
  return Status::error(
      std::string(what) + " " + std::to_string(bytes) + " bytes of shared memory: " + std::strerror(errno),
      GCCL_ERR_SYSTEM);
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

Status allocate_shared(std::size_t bytes, void** out) {
  if (bytes == 0 || bytes > std::size_t(PTRDIFF_MAX) / 2)
    return Status::error(
        "bytes is " + std::to_string(bytes) + ": expected 1 to " + std::to_string(std::size_t(PTRDIFF_MAX) / 2),
        GCCL_ERR_INVALID_ARGUMENT);
  const std::size_t size = whole_pages(bytes);
  const int file = ::memfd_create("gccl", MFD_CLOEXEC);
  if (file < 0) return refused("cannot create", size);
  // All of it exists from the start: touching a page that the machine has no room for would kill the process.
  if (const int error = ::posix_fallocate(file, 0, off_t(size))) {
    ::close(file);
    errno = error;
    return refused("cannot reserve", size);
  }
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    ::close(file);
    errno = error;
    return refused("cannot map", size);
  }
  Allocations& all = mine();
  std::lock_guard lock(all.mutex);
  all.by_address[reinterpret_cast<std::uintptr_t>(base)] = {.bytes = size, .number = ++all.last, .file = file};
  *out = base;
  return {};
}

Status free_shared(void* data) {
  Allocations& all = mine();
  std::lock_guard lock(all.mutex);
  const auto it = all.by_address.find(reinterpret_cast<std::uintptr_t>(data));
  if (it == all.by_address.end())
    return Status::error("ptr is not what GCCL_Mem_alloc gave, or was freed", GCCL_ERR_INVALID_ARGUMENT);
  ::munmap(data, it->second.bytes);
  ::close(it->second.file);
  all.by_address.erase(it);
  ++all.freed;
  return {};
}

Shared_place shared_place(const void* data, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  Allocations& all = mine();
  std::lock_guard lock(all.mutex);
  Shared_place place{.number = 0, .file = -1, .offset = 0, .freed = all.freed};
  auto it = all.by_address.upper_bound(at);
  if (it == all.by_address.begin()) return place;
  --it;
  if (at - it->first > it->second.bytes || bytes > it->second.bytes - (at - it->first)) return place;
  place.number = it->second.number;
  place.file = it->second.file;
  place.offset = at - it->first;
  return place;
}

// Shared by all communicators of this process.
struct Mapped_peer::Mapping {
  std::uint32_t number = 0;
  void* base = nullptr;
  std::size_t bytes = 0;
  ~Mapping() {
    if (base) ::munmap(base, bytes);
  }
};

const std::byte* Mapped_peer::at(std::uint32_t pid, std::uint64_t start, const Shared_place& place, std::size_t bytes) {
  if (place.freed != freed_) {
    mapped_.clear();
    freed_ = place.freed;
  }
  const auto found = [&](const Mapping& m) -> const std::byte* {
    if (place.offset > m.bytes || bytes > m.bytes - place.offset) return nullptr;
    return static_cast<const std::byte*>(m.base) + place.offset;
  };
  for (const auto& m : mapped_)
    if (m->number == place.number) return found(*m);

  static std::mutex mutex;
  static auto* const known =
      new std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, std::weak_ptr<Mapping>>;
  std::lock_guard lock(mutex);
  std::erase_if(*known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Mapping>& place_of = (*known)[{pid, start, place.number}];
  std::shared_ptr<Mapping> m = place_of.lock();
  if (!m) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%u/fd/%d", pid, place.file);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return nullptr;
    struct stat s;
    m = std::make_shared<Mapping>();
    if (::fstat(file, &s) == 0 && s.st_size > 0) {
      void* const base = ::mmap(nullptr, std::size_t(s.st_size), PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
      if (base != MAP_FAILED) {
        m->number = place.number;
        m->base = base;
        m->bytes = std::size_t(s.st_size);
      }
    }
    ::close(file);
    if (!m->base) return nullptr;
    place_of = m;
  }
  mapped_.push_back(m);
  return found(*m);
}

}  // namespace gccl::shm
