// gccl diagnose: what a cluster should reach, and why it does not.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/analysis/measured.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/output.hpp"
#include "sim/measured/diagnosis/diagnosis.hpp"

namespace gccl {
namespace {

struct DiagnoseArguments {
  MeasuredArguments measured;
  std::string json;
};

int diagnose(const DiagnoseArguments& a) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::filesystem::path file = cluster_file_of(a.measured), set = parameters_file_of(a.measured);
  check_outputs({a.json}, inputs_of(a.measured));
  const json::Node description = json::Node::load(file);
  const auto cluster = load_measured_clusters(a.measured).cards;
  sim::Measured measured = read_measured(a.measured);
  const Parameters parameters = measured_set(a.measured, description, measured.rows).parameters;
  const nlohmann::json document =
      sim::diagnosis(measured, file, description, parameters,
                     {std::string(cluster->name()), json::valid_text(file.string()), json::valid_text(set.string())},
                     isatty(STDERR_FILENO) ? show_progress : sim::DiagnosisProgress());
  if (!a.json.empty() && a.json != "-") write_output(a.json, json::format_value(document, 1) + '\n');
  write_stdout(a.json == "-" ? json::format_value(document, 1) + '\n'
                             : sim::diagnosis_text(document, terminal_columns()));
  const nlohmann::json& diagnoses = document["diagnoses"];
  if (diagnoses.empty()) {
    write_stderr("gccl diagnose: none of the rows can be compared with this cluster; see what was skipped, and why\n");
    return 2;
  }
  return std::all_of(diagnoses.begin(), diagnoses.end(), [](const auto& d) { return d["verdict"] == "healthy"; }) ? 0
                                                                                                                  : 1;
}

}  // namespace

// Sets exit_code to 1 where a shortfall is found, and to 2 where no row can be compared.
void add_diagnose(Command& app, int& exit_code) {
  Command* command = app.add_subcommand("diagnose", "Say what a cluster should reach, and what explains a shortfall");
  const auto a = std::make_shared<DiagnoseArguments>();
  add_measured_options(*command, a->measured);
  add_parameters_option(*command, a->measured);
  command
      ->add_option("--json", a->json,
                   "Write the diagnosis as JSON; - for standard output, which then holds nothing else")
      ->value("FILE");
  command->examples({"gccl diagnose all_reduce.log --cluster dgx-h100-superpod-2048",
                     "gccl diagnose measured.csv --cluster alps-gh200-2048 --system fallback --json -"});
  command->callback([a, &exit_code] { exit_code = diagnose(*a); });
}

}  // namespace gccl
