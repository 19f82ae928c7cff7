#include "libgccl/bootstrap/store_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "gccl/gccl.h"
#include "libgccl/base/descriptor.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

Status write_store_file(const std::string& path, std::span<const std::byte> bytes, std::string draft) {
  if (draft.empty()) draft = path + "~";
  unlink(draft.c_str());  // of a killed job, or a link that another user put there
  const Fd fd(above_standard_streams(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)));
  if (!fd) return system_error(fmt::format("cannot write {}", draft), errno);
  while (!bytes.empty()) {
    const ssize_t n = write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Status s = system_error(fmt::format("cannot write {}", draft), errno);
      unlink(draft.c_str());
      return s;
    }
    bytes = bytes.subspan(std::size_t(n));
  }
  if (rename(draft.c_str(), path.c_str()) != 0)
    return system_error(fmt::format("cannot rename {} to {}", draft, path), errno);
  return {};
}

Status read_store_file(const std::string& path, std::size_t bytes_max, std::vector<std::byte>* bytes, bool* found) {
  *found = false;
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd)
    return errno == ENOENT || errno == ESTALE ? Status() : system_error(fmt::format("cannot read {}", path), errno);
  struct stat about {};
  if (fstat(fd.get(), &about) != 0)
    return errno == ESTALE ? Status() : system_error(fmt::format("cannot read {}", path), errno);
  if (!S_ISREG(about.st_mode)) return Status::error(fmt::format("{}: expected a regular file", path), GCCL_ERR_SYSTEM);
  if (about.st_uid != geteuid())
    return Status::error(fmt::format("{} belongs to user {}, expected {}", path, about.st_uid, geteuid()),
                         GCCL_ERR_SYSTEM);
  if (std::size_t(about.st_size) > bytes_max)
    return Status::error(fmt::format("{} has {} bytes, expected at most {}", path, about.st_size, bytes_max),
                         GCCL_ERR_SYSTEM);
  bytes->resize(std::size_t(about.st_size));
  for (std::size_t done = 0; done < bytes->size();) {
    const ssize_t n = read(fd.get(), bytes->data() + done, bytes->size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == ESTALE ? Status() : system_error(fmt::format("cannot read {}", path), errno);
    if (n == 0) return Status::error(fmt::format("{} became shorter while it was read", path), GCCL_ERR_SYSTEM);
    done += std::size_t(n);
  }
  *found = true;
  return {};
}

void remove_store_file(const std::string& path) { unlink(path.c_str()); }

}  // namespace gccl
