// `gccl pmpi`: runs an MPI program with the drop-in in front of its MPI, or says why that is impossible.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand, which parses the words behind its name by itself. It becomes the program, whose exit
// code is then the process's own; it returns only with --help, or throws json::InputError.
void add_pmpi(Command& app, int& exit_code);

}  // namespace gccl
