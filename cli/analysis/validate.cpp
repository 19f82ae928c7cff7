// gccl validate: predicted times beside measured ones.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "cli/analysis/measured.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/output.hpp"
#include "sim/measured/validation/validation.hpp"

namespace gccl {
namespace {

struct ValidateArguments {
  MeasuredArguments measured;
  std::string engine = "closed", planner = "library", json, csv, html;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
};

std::vector<sim::Predicted> predict(const ValidateArguments& a, const sim::MeasuredClusters& clusters,
                                    const sim::MeasuredPoints& points, sim::Measured& measured) {
  if (a.engine == "closed") return points.closed(clusters, &measured.skipped);
  const sim::Engine engine = engine_named(a.engine);
  sim::RunOptions options{.jobs = a.jobs, .progress = {}};
  if (isatty(STDERR_FILENO)) options.progress = show_progress;
  return points.simulated(clusters, engine, simulation_engines(engine == sim::Engine::simgrid), options);
}

int validate(const ValidateArguments& a) {
  if (a.json == "-" && a.csv == "-")
    throw json::InputError("only one of --json and --csv can be written to standard output");
  if (a.html == "-")
    throw json::InputError(
        "--html: found \"-\", expected a file; --json and --csv alone can be written to standard output");
  ::signal(SIGPIPE, SIG_IGN);
  const sim::MeasuredClusters clusters = load_measured_clusters(a.measured);
  const Cluster& cluster = *clusters.cards;
  const std::filesystem::path file = cluster_file_of(a.measured), parameters = parameters_file_of(a.measured);
  check_outputs({a.json, a.csv, a.html}, inputs_of(a.measured));
  sim::Measured measured = a.measured.live ? measured_now(a.measured, cluster) : read_measured(a.measured);
  const sim::MeasuredPoints points(measured.rows, clusters, file, measured.skipped, a.planner);
  const std::vector<sim::Predicted> predicted = predict(a, clusters, points, measured);
  const nlohmann::json document = sim::validation(
      measured, predicted, points,
      {std::string(cluster.name()), json::valid_text(file.string()), json::valid_text(parameters.string()), a.engine});
  if (!a.json.empty() && a.json != "-") write_output(a.json, json::format_value(document, 1) + '\n');
  if (!a.csv.empty() && a.csv != "-") write_output(a.csv, printable(sim::validation_csv(document)));
  if (!a.html.empty()) write_output(a.html, sim::validation_html(document));
  if (a.json == "-")
    write_stdout(json::format_value(document, 1) + '\n');
  else if (a.csv == "-") {
    write_stdout(sim::validation_csv(document));
    write_stderr(sim::left_out_text(document));
  } else
    write_stdout(sim::validation_text(document, terminal_columns()));
  if (!predicted.empty()) return 0;
  write_stderr("gccl validate: none of the rows can be compared with this cluster; see what was skipped, and why\n");
  return 2;
}

}  // namespace

// Sets exit_code to 2 where no row can be compared.
void add_validate(Command& app, int& exit_code) {
  Command* command = app.add_subcommand("validate", "Compare predicted times with measured ones");
  const auto a = std::make_shared<ValidateArguments>();
  add_measured_options(*command, a->measured, true);
  add_parameters_option(*command, a->measured);
  command->add_option("--engine", a->engine, "closed forms, or simulation by model, flow or simgrid")
      ->value("NAME")
      ->check(OneOf{"closed", "model", "flow", "simgrid"})
      ->capture_default_str();
  command
      ->add_option(
          "--planner", a->planner,
          "Whose rules stand for a library's own choice: its own where they are known, or gccl's, nccl's, openmpi's")
      ->value("NAME")
      ->check(OneOf{"library", "gccl", "nccl", "openmpi"})
      ->capture_default_str();
  command
      ->add_option("--json", a->json,
                   "Write points and statistics as JSON; - for standard output, which then holds nothing else")
      ->value("FILE");
  command->add_option("--csv", a->csv, "Write the points as CSV; - for standard output alone")->value("FILE");
  command->add_option("--html", a->html, "Write a self-contained page: predicted against measured, and the tables")
      ->value("FILE");
  command->add_option("--jobs", a->jobs, "Points simulated at once (default: one per core)")->check(Range{1, 1024});
  command->examples({"gccl validate all_reduce.log --cluster dgx-h100-superpod-2048 --html validation.html",
                     "gccl validate measured.csv --cluster marenostrum5-acc --engine model --json -",
                     "gccl validate --live --cards-per-node 2"});
  command->callback([a, &exit_code] {
    if (a->measured.live && a->measured.cluster.empty()) a->measured.cluster = "host";
    exit_code = validate(*a);
  });
}

}  // namespace gccl
