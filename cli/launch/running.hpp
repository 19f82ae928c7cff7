// One process of a job that runs, and what became of it.
#pragma once

#include <sys/types.h>

#include <string>

#include "libgccl/net/socket.hpp"

namespace gccl::launch {

constexpr int kNotFound = 127;  // the exit code where there is no such program, as shells have it

struct Running {
  unsigned number = 0;  // in job.ranks, or in job.spares
  bool spare = false;
  bool remote = false;
  pid_t pid = -1;
  Fd input;              // of a remote rank
  std::string to_write;  // to that, once there is room
  bool ended = false;
  int status = 0;         // as from waitpid
  unsigned found_at = 0;  // by which of the launcher's looks
  bool stop_was_said = false;
  std::string word;  // by which it says what becomes of its joining
  // It joins a job that runs, and waits to be admitted, as far as is known; it has been a rank.
  bool waits = false, was_rank = false;
  std::string name() const;
  bool waiting_spare() const { return spare && waits && !was_rank; }
};

// Of a status as from waitpid.
bool failed(int status);
int exit_code_of(int status);
// The reader of standard output has left, as `head` does, and the rank died of it. Shells say nothing then either.
bool lost_its_reader(int status);

// From outside, as by kill or for want of memory: no crash of its own.
bool was_killed(const Running& r);
std::string what_became_of(const Running& r);

}  // namespace gccl::launch
