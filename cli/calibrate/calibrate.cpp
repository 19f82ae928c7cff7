// `gccl calibrate`: a parameter set from what this job's ranks measure.
#include <fmt/format.h>

#include "cli/calibrate/options.hpp"
#include "cli/calibrate/run.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "libgccl/base/environment.hpp"

namespace gccl {
namespace {

int command_calibrate(const std::vector<std::string>& args) {
  // Help needs no ranks, and before they meet only they could say what is wrong: so the words are looked at first.
  if (asks_for_help(args)) {
    write_stdout(std::get<Help>(calibrate::parse_options({"--help"})).text);
    return 0;
  }
  const std::string stated = word_after("--backend", args);
  const bool mpi = (stated.empty() ? read_text(process_environment(), "GCCL_BACKENDS") : stated) == "mpi";
  const auto entry = reinterpret_cast<calibrate::Entry>(
      runtime_plugin(mpi, "gccl_calibrate", mpi ? "gccl calibrate --backend mpi" : "gccl calibrate"));
  std::string error;
  const int code = entry(stated, args, &calibrate::parse_options, terminal_columns(), &error);
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
