// Ends a job's processes when the launcher is killed in a way that leaves it no time to do so.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "libgccl/net/socket.hpp"

namespace gccl::launch {

// What others send to a job's processes, the launcher passes on: it does not end the launcher before the ranks, nor the
// guard before the launcher.
inline constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// A process that waits at a pipe for the launcher's end, and then kills the process groups that it knows. The
// kernel's own means, PR_SET_PDEATHSIG, reaches children and not what they started.
class Guard {
 public:
  // Forks: before any rank is started. Without the resources for it the job runs unguarded.
  Guard();
  // The job is over: the guard kills nothing and ends. Every group must be gone.
  ~Guard();
  void watch(pid_t group);

 private:
  Fd pipe_;
  pid_t pid_ = -1;
};

}  // namespace gccl::launch
