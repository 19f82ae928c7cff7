#include "libgccl/backends/shm/reserve.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace gccl::shm {

int reserve(int file, off_t at, off_t bytes) {
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

void release(int file, off_t at, off_t bytes) {
  while (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes) != 0 && errno == EINTR) {
  }
}

}  // namespace gccl::shm
