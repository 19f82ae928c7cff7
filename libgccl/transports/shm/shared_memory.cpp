#include "libgccl/transports/shm/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "gccl/gccl.h"
#include "libgccl/base/descriptor.hpp"
#include "libgccl/base/no_destructor.hpp"
#include "libgccl/base/other_process.hpp"
#include "libgccl/transports/shm/reserve.hpp"

namespace gccl::shm {
namespace {

struct Allocation {
  std::size_t bytes;
  std::uint64_t number;
  int file;
  std::uint32_t inode;
};

// What this process has allocated, by address.
struct Allocations {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> by_address;
  std::uint64_t last = 0, freed = 0;
};
Allocations& mine() {
  static NoDestructor<Allocations> all;
  return *all;
}

std::string text_of(int error) { return fmt::format("{}{}", std::strerror(error), error == EFBIG ? kLimitText : ""); }

Status refused(const char* what, std::size_t bytes, const std::string& why) {
  return Status::error(fmt::format("{} {} bytes of shared memory: {}", what, bytes, why), GCCL_ERR_SYSTEM);
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// What the machine could still give, by /proc/meminfo; without limit where that does not say.
std::uint64_t memory_left() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/meminfo", "re"), std::fclose);
  std::uint64_t available = 0, swap = 0;
  char line[128];
  while (file && std::fgets(line, sizeof line, file.get())) {
    unsigned long long kib = 0;
    if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1) available = kib * 1024;
    if (std::sscanf(line, "SwapFree: %llu", &kib) == 1) swap = kib * 1024;
  }
  return available == 0 ? ~std::uint64_t(0) : available + swap;
}

}  // namespace

}  // namespace gccl::shm

namespace gccl {

Status allocate_shared(std::size_t bytes, void** out) {
  using namespace shm;
  if (bytes == 0 || bytes > std::size_t(PTRDIFF_MAX) / 2)
    return Status::error(fmt::format("bytes is {}: expected 1 to {}", bytes, std::size_t(PTRDIFF_MAX) / 2),
                         GCCL_ERR_INVALID_ARGUMENT);
  const std::size_t size = whole_pages(bytes);
  // Such files know no limit of their own: the system would look for the memory until it ends some process for it.
  if (const std::uint64_t left = memory_left(); size > left)
    return Status::error(fmt::format("cannot reserve {} bytes of shared memory: the machine has {} left", size, left),
                         GCCL_ERR_SYSTEM);
  const int file = above_standard_streams(::memfd_create("gccl", MFD_CLOEXEC));
  if (file < 0) return refused("cannot create", size, text_of(errno));
  const auto give_up = [&](const char* what, int error, std::string (*text)(int) = text_of) {
    ::close(file);
    return refused(what, size, text(error));
  };
  struct stat st;
  if (::fstat(file, &st) != 0) return give_up("cannot look at", errno);
  if (const int error = reserve(file, 0, off_t(size))) return give_up("cannot reserve", error);
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (base == MAP_FAILED) return give_up("cannot map", errno, text_of_mapping);
  Allocations& all = mine();
  std::lock_guard lock(all.mutex);
  try {
    all.by_address[reinterpret_cast<std::uintptr_t>(base)] = {
        .bytes = size, .number = ++all.last, .file = file, .inode = std::uint32_t(st.st_ino)};
  } catch (const std::bad_alloc&) {
    ::munmap(base, size);
    return give_up("cannot note", ENOMEM);
  }
  *out = base;
  return {};
}

Status free_shared(void* data) {
  using namespace shm;
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

}  // namespace gccl

namespace gccl::shm {

SharedPlace shared_place(const void* data, std::size_t bytes) {
  assert(data && bytes > 0);
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  Allocations& all = mine();
  std::lock_guard lock(all.mutex);
  SharedPlace place{.number = 0, .offset = 0, .freed = all.freed, .file = -1, .inode = 0};
  auto it = all.by_address.upper_bound(at);
  if (it == all.by_address.begin()) return place;
  --it;
  if (at - it->first > it->second.bytes || bytes > it->second.bytes - (at - it->first)) return place;
  place.number = it->second.number;
  place.file = it->second.file;
  place.inode = it->second.inode;
  place.offset = at - it->first;
  return place;
}

namespace {

// Of another process's descriptor.
struct PathOf {
  char text[64];
  PathOf(std::uint32_t pid, int file) { std::snprintf(text, sizeof text, "/proc/%u/fd/%d", pid, file); }
  PathOf(std::uint32_t pid, std::int32_t thread, int file) {
    std::snprintf(text, sizeof text, "/proc/%u/task/%d/fd/%d", pid, int(thread), file);
  }
};

// f(path) for the descriptor, until it is true: where the process's main thread has ended, only the others have any.
template <class F>
bool with_path_of(std::uint32_t pid, int descriptor, F f) {
  if (f(PathOf(pid, descriptor).text)) return true;
  const int error = errno;
  if (main_thread_has_ended(static_cast<std::int32_t>(pid))) {
    OtherThreads threads(static_cast<std::int32_t>(pid));
    while (const std::int32_t thread = threads.next())
      if (f(PathOf(pid, thread, descriptor).text)) return true;
  }
  errno = error;
  return false;
}

bool is_file(const struct stat& s, dev_t device, ino_t inode) { return s.st_dev == device && s.st_ino == inode; }

}  // namespace

bool is_descriptor_of(std::uint32_t pid, int descriptor, int file) {
  struct stat here;
  if (::fstat(file, &here) != 0) return false;
  return with_path_of(pid, descriptor, [&](const char* path) {
    struct stat there;
    return ::stat(path, &there) == 0 && is_file(there, here.st_dev, here.st_ino);
  });
}

// Shared by all communicators of this process.
struct MappedPeer::Mapping {
  std::uint64_t number = 0;
  void* base = nullptr;
  std::size_t bytes = 0;
  int file = -1;  // the owner's descriptor, and which file that is
  dev_t device = 0;
  ino_t inode = 0;
  ~Mapping() {
    if (base) ::munmap(base, bytes);
  }

  bool map(std::uint32_t pid, const SharedPlace& place) {
    assert(!base);
    int here = -1;
    if (!with_path_of(pid, place.file, [&](const char* path) {
          here = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
          return here >= 0;
        }))
      return false;
    struct stat s;
    // /proc may be another process-id namespace's, and the process another one of that number.
    if (::fstat(here, &s) == 0 && s.st_size > 0 && std::uint32_t(s.st_ino) == place.inode) {
      void* const at = ::mmap(nullptr, std::size_t(s.st_size), PROT_READ, MAP_SHARED | MAP_POPULATE, here, 0);
      if (at != MAP_FAILED) {
        number = place.number;
        base = at;
        bytes = std::size_t(s.st_size);
        file = place.file;
        device = s.st_dev;
        inode = s.st_ino;
      }
    }
    const int error = errno;
    ::close(here);
    errno = error;
    return base != nullptr;
  }

  // Whether the owner has it no more. No other file takes the number of one that is mapped.
  bool is_freed(std::uint32_t pid) const {
    return !with_path_of(pid, file, [&](const char* path) {
      struct stat s;
      return ::stat(path, &s) == 0 && is_file(s, device, inode);
    });
  }
};

const std::byte* MappedPeer::at(std::uint32_t pid, const std::string& owner, const SharedPlace& place,
                                std::size_t bytes) {
  if (place.freed != freed_) {
    std::erase_if(mapped_, [pid](const auto& m) { return m->is_freed(pid); });
    freed_ = place.freed;
  }
  errno = 0;                              // that the file is another one, or shorter, is no error of the system
  if (place.number == 0) return nullptr;  // it is in no allocation
  const auto found = [&](const Mapping& m) -> const std::byte* {
    if (place.offset > m.bytes || bytes > m.bytes - place.offset) return nullptr;
    return static_cast<const std::byte*>(m.base) + place.offset;
  };
  for (const auto& m : mapped_)
    if (m->number == place.number) return found(*m);

  static std::mutex mutex;
  static NoDestructor<std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<Mapping>>> known;
  std::lock_guard lock(mutex);
  try {
    std::erase_if(*known, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<Mapping>& place_of = (*known)[{owner, place.number}];
    std::shared_ptr<Mapping> m = place_of.lock();
    if (!m) {
      m = std::make_shared<Mapping>();
      if (!m->map(pid, place)) return nullptr;
      place_of = m;
    }
    mapped_.push_back(m);
    return found(*m);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return nullptr;
  }
}

}  // namespace gccl::shm
