// `gccl verify`: proves the algorithms right.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand. After parsing, exit_code is set when it was chosen: 0 all proved, 1 a failure, 2 bad input.
void add_verify(Command& app, int& exit_code);

}  // namespace gccl
