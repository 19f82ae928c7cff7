// `gccl bench`: times collectives on a real backend and checks what they leave behind.
#include <fmt/format.h>

#include <cstdio>

#include "cli/bench/options.hpp"
#include "cli/bench/run.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "libgccl/base/environment.hpp"

namespace gccl {
namespace {

// The word after --backend; where there is none, what the process was started by: Open MPI's or MPICH's mpirun. (srun
// --mpi=pmi2 sets PMI_SIZE, too, for whatever it starts.) Ranks of gccl launch inherit what MPI's launcher says of the
// shell that it was started in.
std::string backend_asked(const std::vector<std::string>& args) {
  if (const std::string stated = word_after("--backend", args); !stated.empty()) return stated;
  const Environment environment = without_empty(process_environment());
  if (environment("GCCL_RANK")) return "native";
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"})
    if (environment(name)) return "mpi";
  return "native";
}

bench::Entry entry_of(const std::string& backend) {
  const bool mpi = backend == "mpi";
  const std::string target = mpi ? "gccl_bench_mpi" : "gccl_bench_native";
  return reinterpret_cast<bench::Entry>(
      plugin(mpi ? "bench_mpi" : "bench_native", "gccl_bench",
             fmt::format("{} is part of a whole build: cmake --build FOLDER --target {}{}",
                         mpi ? "--backend mpi" : "gccl bench", target, mpi ? " (needs an MPI: libopenmpi-dev)" : "")));
}

int command_bench(const std::vector<std::string>& args) {
  // Help needs no ranks, and before they meet only they could say what is wrong: so the words are looked at first.
  if (asks_for_help(args)) {
    write_stdout(std::get<Help>(bench::parse_options({"--help"}, 1)).text);
    return 0;
  }
  const std::string backend = backend_asked(args);
  std::string error;
  const int code =
      entry_of(backend)(backend == "native" || backend == "mpi" ? "" : backend, args, &bench::parse_options, &error);
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
