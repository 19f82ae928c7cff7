// gccl run: a scenario file, from reading to reports.
#pragma once

#include "cli/command.hpp"

namespace gccl {

// Adds the subcommand. Its callback sets exit_code: 0 every expectation held, 1 one did not, 130 interrupted; wrong
// input and failures leave it as exceptions (json::InputError, sim::JobFailed).
void add_run(Command& app, int& exit_code);

}  // namespace gccl
