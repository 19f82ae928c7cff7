#include "libgccl/transports/shm/reserve.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gccl::shm {
namespace {

bool allowed(off_t end) {
  rlimit l{};
  return ::getrlimit(RLIMIT_FSIZE, &l) != 0 || l.rlim_cur == RLIM_INFINITY || rlim_t(end) <= l.rlim_cur;
}

}  // namespace

int reserve(int file, off_t at, off_t bytes) {
  if (!allowed(at + bytes)) return EFBIG;
  constexpr off_t kMost = 16 * 1024 * 1024, kLeast = 4096;
  for (off_t piece = kMost; bytes > 0;) {
    const off_t now = std::min(piece, bytes);
    const int error = ::posix_fallocate(file, at, now);
    if (error == EINTR) {
      piece = std::max(piece / 4, kLeast);
    } else if (error != 0) {
      return error;
    } else {
      at += now;
      bytes -= now;
      piece = std::min(piece * 2, kMost);
    }
  }
  return 0;
}

std::string text_of_mapping(int error) {
  std::string text = std::strerror(error);
  if (error == ENOMEM)
    text += "; the process has no address space or mappings left (ulimit -v, sysctl vm.max_map_count)";
  if (error == EMFILE) text += "; see ulimit -n";
  return text;
}

int resize(int file, off_t bytes) {
  if (!allowed(bytes)) return EFBIG;
  return ::ftruncate(file, bytes) == 0 ? 0 : errno;
}

void release(int file, off_t at, off_t bytes) {
  while (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes) != 0 && errno == EINTR) {
  }
}

}  // namespace gccl::shm
