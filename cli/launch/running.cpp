#include "cli/launch/running.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace gccl::launch {
namespace {

// 0: none. The shell at the far end says 128 + N of a remote rank.
int killed_by(const Running& r) {
  if (WIFSIGNALED(r.status)) return WTERMSIG(r.status);
  const int signal = WEXITSTATUS(r.status) - 128;
  return r.remote && signal > 0 && signal < SIGRTMIN && sigabbrev_np(signal) ? signal : 0;
}

}  // namespace

std::string Running::name() const { return fmt::format("{} {}", spare ? "spare" : "rank", number); }

bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

bool lost_its_reader(int status) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return exit_code_of(status) == 128 + SIGPIPE && poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

bool was_killed(const Running& r) {
  const int signal = killed_by(r);
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

std::string what_became_of(const Running& r) {
  if (!WIFEXITED(r.status)) {
    const int signal = WTERMSIG(r.status);
    return fmt::format("{} was killed by signal {} ({})", r.name(), signal, strsignal(signal));
  }
  const int code = WEXITSTATUS(r.status);
  if (const int signal = killed_by(r))
    return fmt::format("{} exited with code {}: it was killed by signal {} ({}), or the program said so", r.name(),
                       code, signal, strsignal(signal));
  if (code == kNotFound)
    return fmt::format("{} exited with code 127: its program, or one that it calls, was not found", r.name());
  if (code == 255 && r.remote)
    return fmt::format("{} exited with code 255: ssh could not reach its host, or the program said so", r.name());
  return fmt::format("{} exited with code {}", r.name(), code);
}

}  // namespace gccl::launch
