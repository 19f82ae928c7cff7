// `gccl bench`: times collectives on a real backend and checks what they leave behind.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand. After parsing, exit_code is set when it was chosen: 0 all right, 1 wrong elements or a failing
// backend, 2 bad input. It parses its own options once the ranks have met, so that only rank 0 speaks.
void add_bench(Command& app, int& exit_code);

}  // namespace gccl
