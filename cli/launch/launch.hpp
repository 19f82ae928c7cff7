// `gccl launch`: starts the ranks of a job, here or over ssh, and ends them together.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand, which parses the words behind its name by itself. After parsing, exit_code is set when
// it was chosen: 0 every rank ended well; 2 wrong usage or an unknown program; 124 the job took longer than --timeout;
// 130, 143 interrupted; else that of the first rank that failed, 128 + N when signal N killed it, whatever the others
// did afterwards.
void add_launch(Command& app, int& exit_code);

}  // namespace gccl
