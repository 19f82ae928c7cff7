// The commands of the program: each is a file that defines add_NAME, and its line here.
#pragma once

#include "cli/command.hpp"

// In the order in which the help lists them.
// clang-format off
#define GCCL_COMMANDS(line) \
  line(run) \
  line(plan_parallel) \
  line(availability) \
  line(list) \
  line(topology) \
  line(explain) \
  line(tune) \
  line(compare) \
  line(validate) \
  line(fit) \
  line(diagnose) \
  line(doctor) \
  line(verify) \
  line(bench) \
  line(calibrate) \
  line(launch) \
  line(pmpi) \
  line(completion) \
  line(help)
// clang-format on

namespace gccl {

// Adds the subcommand to the program. Its callback sets exit_code, which is 0 else; wrong input and failures may leave
// it as exceptions (json::InputError, sim::JobFailed).
#define GCCL_DECLARE(name) void add_##name(Command& app, int& exit_code);
GCCL_COMMANDS(GCCL_DECLARE)
#undef GCCL_DECLARE

}  // namespace gccl
