// What a program prints.
#pragma once

#include <functional>
#include <string>

namespace gccl {

struct ChildOutput {
  std::string text;
  int status = 0;  // as waitpid() gives it
};

// Runs `start`, which is to become another program, in a process of its own, and takes its standard output until it
// closes it. A process whose `start` returns ends with 127; one whose parent is killed meanwhile gets SIGTERM. Throws
// std::runtime_error where none can be started.
ChildOutput captured_output(const std::function<void()>& start);

}  // namespace gccl
