// File descriptors and the numbers that they get.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace gccl {

// For what the system has just opened, or -1 with errno: the same, or a copy above standard input, output and error. A
// program may have closed these, as daemons do, and what it prints or reads there is not for GCCL's connections and
// files. For all that stays open or is written to; what is open for reading for a moment harms nobody.
inline int above_standard_streams(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return higher;
}

}  // namespace gccl
