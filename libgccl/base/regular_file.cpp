#include "libgccl/base/regular_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gccl {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISFIFO(mode)) return "is a pipe";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is a device";
}

struct Closed {
  int fd;
  ~Closed() { ::close(fd); }
};

}  // namespace

Status read_regular_file(const std::string& file, std::uint64_t bytes_max, std::string* text) {
  const auto wrong = [&](const std::string& what) { return invalid(fmt::format("{}: {}", file, what)); };
  struct stat about {};
  const auto not_regular = [&] { return wrong(fmt::format("{}, expected a file", kind_of(about.st_mode))); };
  // Some devices act when they are opened, and a socket cannot be.
  if (::stat(file.c_str(), &about) != 0)
    return wrong(errno == ENOENT || errno == ENOTDIR ? "no such file" : std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return not_regular();
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return wrong("cannot be opened for reading");
  const Closed closed{fd};
  if (::fstat(fd, &about) != 0) return wrong(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return not_regular();  // replaced since
  text->clear();
  char chunk[1 << 16];
  for (;;) {  // to its end, whatever length is stated: files of /proc state none
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return wrong(fmt::format("reading failed: {}", std::strerror(errno)));
    if (n == 0) return {};
    text->append(chunk, std::size_t(n));
    if (text->size() > bytes_max)
      return wrong(fmt::format("larger than {} MiB, the most a file may have", bytes_max >> 20));
  }
}

}  // namespace gccl
