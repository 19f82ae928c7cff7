// gccl fit: a parameter set from measurements.
#include "sim/measured/fit/fit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "cli/analysis/measured.hpp"
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "sim/measured/validation/validation.hpp"

namespace gccl {
namespace {

namespace fs = std::filesystem;

struct FitArguments {
  MeasuredArguments measured;
  std::string output, name, hold_out = "scales";
  std::vector<std::string> keep;
  bool no_corrections = false;
  int evaluations = 1000;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
};

// How the output names it: by its name where it is a shipped set, else relative to the output's folder.
std::string base_name(const fs::path& base, const fs::path& output) {
  std::error_code error;
  for (const CatalogueEntry& e : catalogue("cost-models"))
    if (fs::equivalent(e.file, base, error)) return e.name;
  if (output == "-") return fs::absolute(base).lexically_normal().string();
  const fs::path folder = output.has_parent_path() ? output.parent_path() : ".";
  return fs::proximate(fs::weakly_canonical(base, error), fs::weakly_canonical(folder, error), error).string();
}

sim::Minimise optimiser() {
  return reinterpret_cast<sim::Minimise>(
      plugin("optimiser", "gccl_minimise",
             "gccl fit needs NLopt (libnlopt-dev, then cmake --build FOLDER); gccl validate does not"));
}

std::string source_of(const FitArguments& a, const sim::FitReport& report, std::size_t skipped) {
  std::string files, scales;
  for (const std::string& f : a.measured.files)
    files += (files.empty() ? "" : ", ") + json::valid_text(fs::path(f).filename().string());
  for (const sim::FitReport::Errors& e : report.used) scales += (scales.empty() ? "" : ", ") + e.what;
  const std::string left_out = skipped ? fmt::format(", {} skipped", counted(skipped, "row")) : "";
  std::string text = fmt::format("fitted by gccl fit to {} of {} ({}){}; their mean error is {:.1f} %, it was {:.1f} %",
                                 counted(report.all_used.after.points, "point"), files, scales, left_out,
                                 report.all_used.after.mape, report.all_used.before.mape);
  if (!report.held_out.empty())
    text += fmt::format("; that of {} held out is {:.1f} %, it was {:.1f} %",
                        counted(report.all_held_out.after.points, "point"), report.all_held_out.after.mape,
                        report.all_held_out.before.mape);
  return text;
}

int fit_parameters(const FitArguments& a) {
  const fs::path file = cluster_file_of(a.measured);
  check_outputs({a.output}, inputs_of(a.measured));
  const sim::Minimise minimise = optimiser();
  const json::Node cluster = json::Node::load(file);
  sim::Measured measured = read_measured(a.measured);
  const auto [before, base, value] = measured_set(a.measured, cluster, measured.rows);
  sim::FitProblem problem{&measured.rows, file, cluster, before};
  sim::FitOptions options{.hold_out = a.hold_out == "scales"  ? sim::HoldOut::scales
                                      : a.hold_out == "sizes" ? sim::HoldOut::sizes
                                                              : sim::HoldOut::none,
                          .jobs = a.jobs,
                          .evaluations_max = a.evaluations,
                          .keep = a.keep,
                          .corrections = !a.no_corrections};
  if (isatty(STDERR_FILENO)) options.progress = show_progress;
  const sim::FitReport report = sim::fit(problem, minimise, options, measured.skipped);
  const std::string name = !a.name.empty() ? a.name : (base.empty() ? file.stem() : base.stem()).string() + "-fitted";
  const nlohmann::json set = sim::parameter_set(
      json::valid_text(name),
      fmt::format("{} of {}, fitted to measurements.", base.empty() ? "The parameters" : base.stem().string(),
                  cluster.at("name").string()),
      base.empty() ? value : nlohmann::json{{"base", base_name(base, a.output)}}, before, problem.parameters,
      source_of(a, report, measured.skipped.size()));
  write_output(a.output, json::format_value(set, 2) + '\n');
  const std::string left_out = sim::left_out_text(measured);
  const std::string text = sim::fit_text(report, terminal_columns()) + (left_out.empty() ? "" : '\n' + left_out);
  if (a.output == "-")
    write_stderr(printable(text));
  else
    write_stdout(text);
  return 0;
}

}  // namespace

void add_fit(Command& app, int& exit_code) {
  Command* command = app.add_subcommand("fit", "Fit a cluster's parameters to measured times");
  const auto a = std::make_shared<FitArguments>();
  add_measured_options(*command, a->measured);
  command
      ->add_option("-o,--output", a->output,
                   "The parameter set to write; - for standard output, with all text on standard error")
      ->required()
      ->value("FILE");
  command->add_option("--parameters", a->measured.parameters, "Begin with this parameter set instead of the cluster's")
      ->value("FILE");
  command
      ->add_option(
          "--hold-out", a->hold_out,
          "What is not fitted, to see how far the fit holds: the larger half of the scales, every second size, nothing")
      ->value("WHAT")
      ->check(OneOf{"scales", "sizes", "none"})
      ->capture_default_str();
  command
      ->add_option("--keep", a->keep,
                   "Parameters with this in their names (links/nvlink/bandwidth_GBps, card, network) stay as they are; "
                   "may be given several times")
      ->value("TEXT");
  command->add_flag("--no-corrections", a->no_corrections,
                    "Write no corrections by size of what the parameters leave of the fitted curves");
  command->add_option("--evaluations", a->evaluations, "How often one fit looks at all of its points, at most")
      ->check(Range{10, 1000000})
      ->capture_default_str();
  command->add_option("--name", a->name, "The set's name (default: that of the set it changes, and -fitted)")
      ->value("TEXT");
  command->add_option("--jobs", a->jobs, "Fits at once, of those that each leave out one scale (default: one per core)")
      ->check(Range{1, 1024});
  command->examples({"gccl fit measured.csv --cluster marenostrum5-acc -o fitted.json",
                     "gccl validate other.csv --cluster marenostrum5-acc --parameters fitted.json"});
  command->callback([a, &exit_code] { exit_code = fit_parameters(*a); });
}

}  // namespace gccl
