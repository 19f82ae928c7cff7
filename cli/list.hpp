// gccl list: what there is to name in scenarios and on the command line.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand: algorithms, collectives, engines, topologies or scenarios, as text or as JSON.
void add_list(Command& app, int& exit_code);

}  // namespace gccl
