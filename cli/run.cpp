// gccl run: a scenario file, from reading to reports.
#include "cli/run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "cli/authorities.hpp"
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/real/network.hpp"
#include "cli/real/real.hpp"
#include "cli/resumed.hpp"
#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/schema_of.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/html.hpp"
#include "sim/report/table.hpp"
#include "sim/report/topology_svg.hpp"
#include "sim/scenario/explore.hpp"
#include "sim/scenario/judge/evaluate.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/scenario/read/reader.hpp"
#include "sim/scenario/result/row.hpp"

namespace gccl {
namespace {

void check_files(const RunArguments& a, const sim::Scenario& scenario) {
  if (a.json == "-" && a.csv == "-")
    throw json::InputError("only one of --json and --csv can be written to standard output");
  for (const auto& [option, file] : {std::pair("--html", &a.html), {"--trace", &a.trace}, {"--resume", &a.resume}})
    if (*file == "-")
      throw json::InputError(
          fmt::format("{}: found \"-\", expected a file; --json and --csv alone can be written to "
                      "standard output",
                      option));
  std::vector<std::filesystem::path> inputs{scenario.file};
  for (const auto& [cluster, where] : scenario.clusters)
    for (const auto& file : files_of_cluster(cluster_file(where))) inputs.push_back(file);
  for (const sim::ScenarioRun& run : scenario.runs)
    for (const sim::Expectation& e : run.expectations)
      if (e.stored) inputs.push_back(e.where.at("result").path());
  if (auto table = tuning_file_of_environment()) inputs.push_back(std::move(*table));
  check_outputs({a.json, a.csv, a.html, a.trace, a.resume}, inputs);
}

std::vector<std::pair<std::string, std::string>> drawings(const sim::Campaign& campaign) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const sim::SimulatedWorld& w : campaign.worlds)
    if (all.empty() || all.back().first != w.cluster_name)
      all.emplace_back(w.cluster_name, sim::topology_svg(*w.cluster));
  return all;
}

bool asks_for(const sim::Campaign& campaign, sim::Engine engine) {
  return std::any_of(campaign.points.begin(), campaign.points.end(),
                     [&](const sim::Point& p) { return p.engine == engine; });
}

// How real ranks are to reach each other.
sim::RealMeans real_means(const RunArguments& a) {
  static constexpr std::string_view kTransports[] = {"tcp", "shm"};
  sim::RealMeans means;
  if (!a.transport.empty()) {
    const auto at = std::find(std::begin(kTransports), std::end(kTransports), a.transport);
    if (at == std::end(kTransports))
      throw json::InputError(
          fmt::format("--transport: found \"{}\"{}", a.transport, suggestion(a.transport, kTransports)));
    means.shm = *at == "shm";
  }
  means.namespaces = a.namespaces;
  if (means.shm && means.namespaces)
    throw json::InputError("--namespaces: shared memory needs no network; expected --transport tcp");
  if (means.namespaces) means.obstacle = real::Network::obstacle();
  return means;
}

// What only the simulation can do, and options that real ranks alone have.
void check_real(const RunArguments& a, bool real) {
  if (!real) {
    for (const auto& [option, given] : {std::pair("--transport", !a.transport.empty()), {"--namespaces", a.namespaces}})
      if (given) throw json::InputError(fmt::format("{}: for real ranks; expected --engine real with it", option));
    return;
  }
  for (const auto& [option, given] :
       {std::pair("--seeds", !a.seeds.empty()), {"--trace", !a.trace.empty()}, {"--resume", !a.resume.empty()}})
    if (given) throw json::InputError(fmt::format("{}: for simulations; real ranks do not run twice alike", option));
}

void use_journal(const sim::Campaign& campaign, sim::Journal& journal, sim::RunOptions& options) {
  options.journal = &journal;
  options.keys = sim::point_keys(campaign);
  say_known(journal, options.keys);
}

// With many seeds: what the first one that breaks an expectation breaks, how to see that again, and the fewest faults.
int explore_seeds(const RunArguments& a, const sim::Campaign& campaign, sim::RunOptions options) {
  const sim::SeedRange seeds = sim::read_seeds(a.seeds, "--seeds");
  options.stop = &catch_interrupts();
  std::optional<sim::BrokenSeed> found;
  try {
    found = sim::explore(campaign, simulation_engines(false), seeds, options);
  } catch (const sim::Interrupted&) {
    write_stderr(options.progress ? "\ngccl: interrupted\n" : "gccl: interrupted\n");
    return interrupted_code();
  }
  const std::uint64_t number = seeds.last - seeds.first + 1;
  if (!found) {
    if (!a.quiet)
      write_stdout(number == 1
                       ? fmt::format("held    with seed {}\n", seeds.first)
                       : fmt::format("held    with all {} seeds from {} to {}\n", number, seeds.first, seeds.last));
    return 0;
  }
  std::string text = fmt::format("BROKEN  with seed {}, the first of {}..{}\n", found->seed, seeds.first, seeds.last);
  for (const std::string& broken : found->broken) text += fmt::format("        {}\n", broken);
  text += fmt::format("replay  gccl run {} --seed {}", shell_word(printable_line(a.scenario)), found->seed);
  for (const auto& [option, given] : {std::pair("--engine", &a.engine), {"--planner", &a.planner}})
    if (!given->empty()) text += fmt::format(" {} {}", option, *given);
  text += '\n';
  for (const auto& timeline : found->minimal) {
    const sim::SimulatedWorld& world = campaign.worlds[timeline.world];
    const std::string where = campaign.worlds.size() > 1 ? fmt::format(" on {} with {}", world.cluster_name,
                                                                       counted(std::uint64_t(world.ranks()), "rank"))
                                                         : "";
    text += fmt::format("run {}{}: {} of {} faults are enough: {}\n", timeline.run, where, timeline.faults.size(),
                        timeline.of, timeline.found);
    text += "\"faults\": [";
    for (const auto& fault : timeline.faults)
      text += fmt::format("{}\n  {}", &fault == &timeline.faults[0] ? "" : ",", json::format_value(fault));
    text += "\n]\n";
  }
  write_stdout(text);
  return 1;
}

// A scenario's points and how they are to be played, once its mistakes are ruled out.
struct Prepared {
  RunArguments arguments;
  sim::Campaign campaign;
  sim::Engines engines;
  sim::RunOptions options;
  std::optional<sim::RealMeans> real = {};  // of real ranks, if there are any

  int play();
};

std::function<int()> prepare_scenario(const RunArguments& a, const std::filesystem::path& file) {
  sim::CampaignOptions campaign_options{.engine = {}, .seed = {}};
  campaign_options.authorities = authorities_of_environment();
  if (a.seed) campaign_options.seed = std::uint64_t(*a.seed);
  if (!a.engine.empty()) campaign_options.engine = engine_named(a.engine);
  if (!a.planner.empty()) {
    const auto at = std::find(kPlanners.begin(), kPlanners.end(), a.planner);
    if (at == kPlanners.end())
      throw json::InputError(fmt::format("--planner: found \"{}\"{}", a.planner, suggestion(a.planner, kPlanners)));
    campaign_options.planner = PlannerKind(at - kPlanners.begin());
  }
  ::signal(SIGPIPE, SIG_IGN);
  for (const auto& [option, given] :
       {std::pair("--what-if", !a.what_if.empty()), {"--scenario-out", !a.scenario_out.empty()}})
    if (given)
      throw json::InputError(fmt::format("{}: for workloads (gccl list workloads); this is a scenario", option));
  const sim::Scenario scenario = sim::read_scenario(file);
  check_files(a, scenario);
  campaign_options.real = real_means(a);
  sim::Campaign campaign = sim::make_campaign(scenario, campaign_options);
  const bool real = asks_for(campaign, sim::Engine::real);
  check_real(a, real);
  if (const std::size_t n = campaign.unchecked)
    write_stderr(fmt::format("gccl: {} expectation{} not checked: about another engine{}\n", n,
                             n == 1 ? " is" : "s are",
                             real ? ", or times of the virtual cluster" : " than --engine " + a.engine));
  sim::check_expectations(*campaign.scenario, sim::row_heads(campaign));
  sim::RunOptions options{.jobs = a.jobs, .trace = !a.trace.empty(), .progress = {}, .stop = nullptr};
  if (!a.quiet && isatty(STDERR_FILENO)) options.progress = show_progress;
  if (!a.seeds.empty()) {
    for (const std::string* file : {&a.json, &a.csv, &a.html, &a.trace, &a.resume})
      if (!file->empty())
        throw json::InputError("--seeds writes no results; replay the seed that it names with --seed");
    if (a.seed) throw json::InputError("--seed is one seed, --seeds are many; expected one of them");
    if (asks_for(campaign, sim::Engine::simgrid))
      throw json::InputError("--seeds: engine \"simgrid\" plays no faults; take protocol or flow");
    sim::read_seeds(a.seeds, "--seeds");
  }
  sim::Engines engines = simulation_engines(asks_for(campaign, sim::Engine::simgrid));
  if (real) {
    real::load_runtime();
    options.jobs = 1;  // ranks share the machine with nobody
  } else {
    campaign_options.real.reset();
  }
  const auto p = std::make_shared<Prepared>(
      Prepared{a, std::move(campaign), std::move(engines), options, std::move(campaign_options.real)});
  return [p] { return p->play(); };
}

int Prepared::play() {
  const RunArguments& a = arguments;
  if (!a.seeds.empty()) return explore_seeds(a, campaign, options);
  std::optional<sim::Journal> journal;
  if (!a.resume.empty()) use_journal(campaign, journal.emplace(a.resume), options);
  options.stop = &catch_interrupts();  // until here a signal ends the program at once
  if (real) engines.real = [means = *real](const sim::Workload& w) { return real::run(w, means); };
  sim::ScenarioResult result;
  try {
    result = sim::run_campaign(campaign, engines, options);
  } catch (const sim::Interrupted&) {
    if (options.progress) write_stderr("\n");
    if (journal) {
      const auto kept = std::count_if(options.keys.begin(), options.keys.end(),
                                      [&](const std::string& key) { return journal->find(key); });
      write_stderr(fmt::format("gccl: interrupted; {} of {} points are in {}: the same command goes on from there\n",
                               kept, options.keys.size(), printable_line(a.resume)));
    } else {
      write_stderr("gccl: interrupted\n");
    }
    return interrupted_code();
  }
  if (journal) say_unwritten(*journal);

  if (!a.json.empty() && a.json != "-") write_output(a.json, result.document.dump(1) + '\n');
  if (!a.csv.empty() && a.csv != "-") write_output(a.csv, printable(sim::result_csv(result.document)));
  if (!a.html.empty()) write_output(a.html, sim::html_report(result.document, drawings(campaign)));
  if (!a.trace.empty()) write_output(a.trace, result.trace);
  if (a.json == "-")
    write_stdout(result.document.dump(1) + '\n');
  else if (a.csv == "-")
    write_stdout(sim::result_csv(result.document));
  else
    write_stdout((a.quiet ? "" : sim::result_tables(result.document, terminal_columns())) +
                 sim::expectation_lines(result.document, a.quiet));
  return result.ok() ? 0 : 1;
}

std::function<int()> prepare_file(const RunArguments& a) {
  const std::filesystem::path file = find_shipped_to_run(a.scenario);
  const auto schema = json::schema_of(file);
  if (schema == "gccl/availability/1")
    throw json::InputError(fmt::format("{}: is an availability study, which gccl availability plays", file.string()));
  return schema == "gccl/workload/1" ? analysis().prepare_step(a, file) : prepare_scenario(a, file);
}

// Each after the other; what a mistake in one of them is said to be comes before anything is played.
int run_files(RunArguments a) {
  if (a.scenarios.size() == 1) {
    a.scenario = a.scenarios[0];
    return prepare_file(a)();
  }
  for (const std::string* file : {&a.json, &a.csv, &a.html, &a.trace, &a.resume, &a.scenario_out})
    if (!file->empty())
      throw json::InputError(
          fmt::format("found {} files to run; results are written of one alone", a.scenarios.size()));
  std::vector<std::function<int()>> prepared;
  for (const std::string& scenario : a.scenarios) {
    a.scenario = scenario;
    prepared.push_back(prepare_file(a));
  }
  int code = 0;
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    if (!a.quiet) write_stdout(fmt::format("{}\n", printable_line(a.scenarios[i])));
    const int one = std::exchange(prepared[i], {})();
    if (one > 1) return one;
    if (one == 1 && a.quiet) write_stdout(fmt::format("        in {}\n", printable_line(a.scenarios[i])));
    code = std::max(code, one);
  }
  return code;
}

}  // namespace

// Sets exit_code to 0 where every expectation held, 1 where one did not, 130 or 143 when interrupted.
void add_run(Command& app, int& exit_code) {
  Command* run = app.add_subcommand("run", "Run a scenario or the step of an LLM, and check its expectations");
  const auto a = std::make_shared<RunArguments>();
  run->add_option("scenario", a->scenarios,
                  "Files of scenarios or of LLMs' steps, or names of shipped ones (gccl list scenarios, workloads)")
      ->required();
  run->add_option("--engine", a->engine, "model, flow, simgrid, protocol or real, instead of the scenario's")
      ->value("NAME")
      ->suggest({"model", "flow", "simgrid", "protocol", "real"});
  run->add_option("--transport", a->transport, "tcp or shm, between the ranks of --engine real (default: tcp)")
      ->value("NAME")
      ->suggest({"tcp", "shm"});
  run->add_flag("--namespaces", a->namespaces,
                "Gives each rank of --engine real a network of its own, to which faults can happen; needs root");
  run->add_option("--planner", a->planner, "gccl, nccl or openmpi: who chooses for \"auto\", instead of the scenario's")
      ->value("NAME")
      ->suggest({"gccl", "nccl", "openmpi"});
  run->add_option("--json", a->json, "Write the result as JSON; - for standard output, which then holds nothing else")
      ->value("FILE");
  run->add_option("--csv", a->csv, "Write the rows as CSV, columns named as in the JSON; - for standard output alone")
      ->value("FILE");
  run->add_option("--html", a->html, "Write a self-contained HTML report")->value("FILE");
  run->add_option("--trace", a->trace,
                  fmt::format("Write a trace of the first point's ranks below {}, for ui.perfetto.dev or "
                              "chrome://tracing",
                              sim::kTraceRanks))
      ->value("FILE");
  run->add_option(
         "--what-if", a->what_if,
         "Play an LLM's step with a change, too: bucket_bytes=25MiB, overlap=false, algorithm=ring, "
         "placement=round_robin, parallel.tensor=4 or any other key; several joined by commas; may be repeated")
      ->value("KEY=VALUE");
  run->add_option("--scenario-out", a->scenario_out, "Write an LLM step's communications as a scenario")->value("FILE");
  run->add_option("--resume", a->resume,
                  "Keep finished points in this file, and take those from it that an interrupted run left there")
      ->value("FILE");
  run->add_option("--seed", a->seed, "Instead of the scenario's")->check(Range{0, INT64_MAX});
  run->add_option(
         "--seeds", a->seeds,
         "Play it with each seed of A..B until one breaks an expectation, and say which of its faults are enough")
      ->value("A..B");
  run->add_option("--jobs", a->jobs, "Points simulated at once (default: one per core)")->check(Range{1, 1024});
  run->add_flag("--quiet", a->quiet, "Print broken expectations only");
  run->examples({"gccl run allreduce-2048 --html report.html", "gccl run my-scenario.json --engine simgrid --json -",
                 "gccl run my-faults.json --seeds 1..1000", "gccl run my-faults.json --engine real --namespaces",
                 "gccl run llama3-405b-16k --what-if overlap=false --html step.html"});
  run->callback([a, &exit_code] { exit_code = run_files(*a); });
}

}  // namespace gccl
