// How a process of a job begins.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>

#include "cli/launch/guard.hpp"
#include "cli/launch/job.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl::launch {

struct Beginning {
  pid_t launcher;
  sigset_t mask;       // of signals that the program finds blocked
  bool reads = false;  // the launcher's standard input, unless that is a terminal
  bool joins = false;  // a job that runs
  std::string report;  // where it says what becomes of its joining; empty: nowhere
  Fd in, out, err;     // its standard streams; none: the launcher's
  int failure = -1;    // to where errno goes, an int, if the program cannot run
};

// In the child, between fork and exec.
[[noreturn]] void become(const Process& process, Guard& guard, Beginning begins);

}  // namespace gccl::launch
