// `gccl topology`: what a cluster description amounts to, as a table, as JSON and as a drawing.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand. After parsing, exit_code is set when it was chosen: 0, or 2 for bad input or an output file that
// cannot be written.
void add_topology(Command& app, int& exit_code);

}  // namespace gccl
