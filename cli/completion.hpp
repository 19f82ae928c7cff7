// What shells and man know of the program, made from its own option tables.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds `gccl completion bash|zsh|fish|man`: a completion script, or the man page gccl(1), on standard output.
void add_completion(Command& app);

}  // namespace gccl
