// The commands of the program: each is a file that defines add_NAME, and its line here.
#pragma once

#include <filesystem>
#include <functional>

#include "cli/command.hpp"

// In the order in which the help lists them: those of the program itself, and those of its plug-in "analysis", which
// ./quickstart does not build.
// clang-format off
#define GCCL_COMMANDS(own, analysis) \
  own(run) \
  analysis(plan_parallel) \
  analysis(availability) \
  own(list) \
  own(topology) \
  own(explain) \
  analysis(tune) \
  analysis(compare) \
  analysis(validate) \
  analysis(fit) \
  analysis(diagnose) \
  analysis(doctor) \
  own(verify) \
  own(bench) \
  analysis(calibrate) \
  own(launch) \
  own(pmpi) \
  own(completion) \
  own(help)
// clang-format on

namespace gccl {

// Adds the subcommand to the program. Its callback sets exit_code, which is 0 else; wrong input and failures may leave
// it as exceptions (json::InputError, sim::JobFailed).
using AddCommand = void(Command& app, int& exit_code);
#define GCCL_DECLARE(name) AddCommand add_##name;
GCCL_COMMANDS(GCCL_DECLARE, GCCL_DECLARE)
#undef GCCL_DECLARE

// All commands of which the first typed word may speak: those of the plug-in only where it is none of the program's
// own, so that these start at once and run where the plug-in is not built.
void add_commands(Command& app, int& exit_code, std::string_view typed);

// What the plug-in "analysis" gives the program (its function "gccl_analysis"): its commands, by their names above, and
// the step of an LLM for gccl run (analysis/step.hpp).
struct RunArguments;  // run.hpp
struct Interrupts;    // interrupt.hpp: the program's, which are the plug-in's as well
struct Analysis {
  AddCommand* (*command)(std::string_view name);
  std::function<int()> (*prepare_step)(const RunArguments& a, const std::filesystem::path& file);
};
using AnalysisEntry = const Analysis*(Interrupts& interrupts);
const Analysis& analysis();  // throws json::InputError where it is not built, or does not fit

}  // namespace gccl
