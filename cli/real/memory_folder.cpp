#include "cli/real/memory_folder.hpp"

#include <fmt/format.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "libgccl/base/system_refused.hpp"

namespace gccl::real {

// A tmpfs that is mounted nowhere. glibc has these calls from 2.36 on.
Fd memory_folder() {
  const Fd made(int(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
  Fd folder;
  if (made && syscall(SYS_fsconfig, made.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
    folder = Fd(int(syscall(SYS_fsmount, made.get(), FSMOUNT_CLOEXEC, 0)));
  if (!folder)
    throw SystemRefused(fmt::format("engine \"real\": a folder in memory: {}", std::generic_category().message(errno)));
  return folder;
}

std::string path_of(const Fd& folder) { return fmt::format("/proc/self/fd/{}", folder.get()); }

}  // namespace gccl::real
