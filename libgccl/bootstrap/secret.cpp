#include "libgccl/bootstrap/secret.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "gccl/gccl.h"
#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {
constexpr std::size_t kSecretBytesMax = 4096;
}

Status read_secret_file(const std::string& path, std::string* secret) {
  const auto invalid = [&](const std::string& why) {
    return Status::error(fmt::format("secret file {}: {}", path, why), GCCL_ERR_INVALID_ARGUMENT);
  };
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // not blocking: it may be a pipe
  if (!fd) return invalid(std::generic_category().message(errno));
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) return invalid(std::generic_category().message(errno));
  if (!S_ISREG(about.st_mode)) return invalid("expected a regular file");
  if (about.st_uid != geteuid() && about.st_uid != 0)
    return invalid(fmt::format("belongs to user {}, expected {} or root", about.st_uid, geteuid()));
  if (about.st_mode & 077) return invalid(fmt::format("others than its owner have access to it: chmod 600 {}", path));
  char buffer[kSecretBytesMax + 3];
  std::size_t bytes = 0;
  for (ssize_t n; bytes < sizeof buffer; bytes += std::size_t(n)) {
    n = read(fd.get(), buffer + bytes, sizeof buffer - bytes);
    if (n < 0) return invalid(std::generic_category().message(errno));
    if (n == 0) break;
  }
  std::string_view text(buffer, bytes);
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty()) return invalid("is empty, expected a secret");
  if (text.size() > kSecretBytesMax) return invalid(fmt::format("expected at most {} bytes", kSecretBytesMax));
  *secret = text;
  return {};
}

std::string random_secret() {
  unsigned char bytes[32];
  const ssize_t got = getrandom(bytes, sizeof bytes, 0);
  assert(got == ssize_t(sizeof bytes));
  std::string text;
  for (const unsigned char b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

}  // namespace gccl
