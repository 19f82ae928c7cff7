#include "cli/launch/guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace gccl::launch {
namespace {

constexpr pid_t kAllIsWell = 0;

[[noreturn]] void stand_guard(int pipe) {
  setsid();  // a Ctrl-C is not for the guard
  std::vector<pid_t> groups;
  for (;;) {
    pid_t group = 0;
    const ssize_t n = ::read(pipe, &group, sizeof group);
    if (n < 0 && errno == EINTR) continue;
    if (n != ssize_t(sizeof group)) break;
    if (group == kAllIsWell) _exit(0);
    groups.push_back(group);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

Guard::Guard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  Fd read_end(ends[0]);
  pipe_ = Fd(ends[1]);
  // What goes to all processes of a job may come before the guard has run for the first time.
  sigset_t passed_on, before;
  sigemptyset(&passed_on);
  for (const int signal : kPassedOn) sigaddset(&passed_on, signal);
  sigprocmask(SIG_BLOCK, &passed_on, &before);
  pid_ = fork();
  if (pid_ == 0) {
    pipe_.reset();
    stand_guard(read_end.get());
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

Guard::~Guard() {
  watch(kAllIsWell);
  pipe_.reset();
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void Guard::watch(pid_t group) {
  if (!pipe_ || pid_ < 0) return;
  // A few bytes into a pipe go whole, and its reader does nothing but read.
  while (write(pipe_.get(), &group, sizeof group) < 0 && errno == EINTR) {
  }
}

}  // namespace gccl::launch
