#include "cli/child_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "libgccl/base/system_refused.hpp"

namespace gccl {

ChildOutput captured_output(const std::function<void()>& start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw SystemRefused(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw SystemRefused(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(ends[1], 1);
    start();
    ::_exit(127);
  }
  ::close(ends[1]);
  ChildOutput out;
  std::array<char, 4096> piece{};
  for (ssize_t n; (n = ::read(ends[0], piece.data(), piece.size())) != 0;) {
    if (n > 0) out.text.append(piece.data(), std::size_t(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  while (::waitpid(child, &out.status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

}  // namespace gccl
