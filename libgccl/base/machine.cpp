#include "libgccl/base/machine.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gccl {

std::string boot_id() {
  constexpr ssize_t kLength = 36;
  char text[64] = {};
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return n >= kLength ? std::string(text, kLength) : std::string();
}

std::string file_identity(const char* path) {
  struct stat about {};
  if (::stat(path, &about) != 0) return {};
  return std::to_string(about.st_dev) + "." + std::to_string(about.st_ino);
}

}  // namespace gccl
