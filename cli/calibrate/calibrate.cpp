// `gccl calibrate`: a parameter set from what this job's ranks measure.
#include <fmt/format.h>

#include "cli/calibrate/options.hpp"
#include "cli/calibrate/run.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"

namespace gccl {
namespace {

int command_calibrate(const std::vector<std::string>& args) {
  // Help needs no ranks, and before they meet only they could say what is wrong: so the words are looked at first.
  if (asks_for_help(args)) {
    write_stdout(std::get<Help>(calibrate::parse_options({"--help"})).text);
    return 0;
  }
  const auto entry = reinterpret_cast<calibrate::Entry>(
      plugin("bench_native", "gccl_calibrate",
             "gccl calibrate is part of a whole build: cmake --build FOLDER --target gccl_bench_native"));
  std::string error;
  const int code = entry(word_after("--backend", args), args, &calibrate::parse_options, terminal_columns(), &error);
  if (!error.empty()) write_stderr(fmt::format("gccl calibrate: {}\n", printable(error)));
  return code;
}

}  // namespace

// As gccl bench it parses its own options once the ranks have met, so that only rank 0 speaks.
void add_calibrate(Command& app, int& exit_code) {
  Command* sub = app.add_subcommand("calibrate", "Measure a job's transports: parameters for planner and simulator");
  sub->parses_itself(calibrate::option_table);
  sub->callback([sub, &exit_code] { exit_code = command_calibrate(sub->remaining()); });
}

}  // namespace gccl
