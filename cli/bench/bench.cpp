// `gccl bench`: times collectives on a real backend and checks what they leave behind.
#include <fmt/format.h>

#include <cstdio>

#include "cli/bench/options.hpp"
#include "cli/bench/run.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "cli/started.hpp"
#include "libgccl/base/environment.hpp"

namespace gccl {
namespace {

// The word after --backend; where there is none, what joins the ranks that the process was started among.
std::string backend_asked(const std::vector<std::string>& args) {
  const std::string stated = word_after("--backend", args);
  return stated.empty() ? started_by(process_environment()).backend : stated;
}

int command_bench(const std::vector<std::string>& args) {
  // Help needs no ranks, and before they meet only they could say what is wrong: so the words are looked at first.
  if (asks_for_help(args)) {
    write_stdout(std::get<Help>(bench::parse_options({"--help"}, 1)).text);
    return 0;
  }
  const std::string backend = backend_asked(args);
  const bool mpi = backend == "mpi";
  const auto entry = reinterpret_cast<bench::Entry>(
      runtime_plugin(mpi, "gccl_bench", mpi ? "gccl bench --backend mpi" : "gccl bench"));
  std::string error;
  const int code = entry(backend == "native" || mpi ? "" : backend, args, &bench::parse_options, &error);
  if (!error.empty()) write_stderr(fmt::format("gccl bench: {}\n", printable(error)));
  return code;
}

}  // namespace

// Sets exit_code to 1 for wrong elements or a failing backend, 2 for wrong input. It parses its own options once the
// ranks have met, so that only rank 0 speaks.
void add_bench(Command& app, int& exit_code) {
  Command* sub = app.add_subcommand("bench", "Times collectives on a real backend (under gccl launch or mpirun)");
  sub->parses_itself(bench::option_table);
  sub->callback([sub, &exit_code] { exit_code = command_bench(sub->remaining()); });
}

}  // namespace gccl
