// `gccl pmpi`: runs an MPI program with the drop-in in front of its MPI, or says why that is impossible.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace gccl {

// Adds the subcommand, which parses `arguments`, those behind its name, by itself. It becomes the program, whose exit
// code is then the process's own; it returns only with --help, or throws json::InputError.
void add_pmpi(CLI::App& app, std::vector<std::string> arguments, int& exit_code);

}  // namespace gccl
