// The processes of a job: starting them, passing signals on, ending all when one fails.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gccl::launch {

// One rank's process: a program of this machine, or an ssh that runs one elsewhere.
struct Process {
  std::vector<std::string> command;                              // found in PATH when it has no '/'
  std::vector<std::pair<std::string, std::string>> environment;  // beyond the launcher's own
  int core = -1;                                                 // to be bound to; -1: not bound
  // Written to its standard input, which then stays open to pass on the names of signals ("TERM"), one on a line, and
  // closes with the launcher. Without it standard input is the launcher's (rank 0, unless a terminal) or empty.
  bool remote = false;
  std::string input;
};

struct Job {
  std::vector<Process> ranks;
  // Processes that wait until ranks admit them; and how many ranks that fail are started anew, as such processes. So
  // many failures in all are none of the job's. Programs of this machine.
  std::vector<Process> spares;
  int restarts = 0;
  bool tag = false;              // "[3] " before each line of rank 3
  bool keep_going = false;       // ranks that are left when one fails go on until they end
  std::int64_t timeout_ms = 0;   // of the whole job; 0: none
  std::int64_t grace_ms = 2000;  // between SIGTERM and SIGKILL
};

// Runs the job to its end and returns the exit code that add_launch describes. No process of it is left behind, not
// even when the launcher itself is killed. Messages go to standard error. Needs a process without other threads,
// which does not ignore SIGCHLD.
int run(const Job& job);

}  // namespace gccl::launch
