#include "libgccl/bootstrap/host.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {

std::string file_identity(const char* path) {
  struct stat about {};
  if (stat(path, &about) != 0) return "none";
  return fmt::format("{}.{}", about.st_dev, about.st_ino);
}

std::string boot_identity() {
  char text[64] = {};
  const Fd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd ? read(fd.get(), text, sizeof text - 1) : 0;
  if (n >= 36) return std::string(text, 36);
  char name[65] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::string host_identity() {
  return fmt::format("{}/{}/{}", boot_identity(), file_identity("/dev/shm"), file_identity("/proc/self/ns/pid"));
}

}  // namespace gccl
