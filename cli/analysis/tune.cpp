// gccl tune: the fastest way to carry out each call on a cluster, and files that carry that to where people run.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/analysis/tune_options.hpp"
#include "cli/bench/team.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "cli/started.hpp"
#include "libgccl/base/environment.hpp"
#include "libgccl/base/processors.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/tuning/exports.hpp"
#include "sim/tuning/page.hpp"
#include "sim/tuning/summary.hpp"

namespace gccl {
namespace {

bool has_nccl(const sim::SweepQuestion& question) {
  return nccl_machine(*question.cluster, {0, Card(question.cluster->cards() > 1)}).has_value();
}

sim::Exporting exporting(const TuneArguments& a) {
  return {a.commutative ? sim::Operations::commute : sim::Operations::any, a.export_gain};
}

bool written(const std::string& to, const std::string& text) { return to.empty() || output_written(to, text, "gccl"); }

// Every output. Whether there was something for each of them, and all were written. What was there before stays where
// nothing was found that could take its place.
bool write_files(const TuneArguments& a, const sim::SweepQuestion& question, const nlohmann::json& document) {
  const TuningTable table = sim::tuning_table(document, *question.cluster);
  if (table.entries.empty()) {
    std::string kept;
    for (const std::string* to : {&a.html, &a.table, &a.nccl, &a.openmpi, &a.openmpi_json, &a.mpich})
      if (!to->empty()) kept += (kept.empty() ? "" : ", ") + printable_line(*to);
    if (!kept.empty())
      write_stderr(fmt::format("gccl: {}: not written: nothing was simulated{}\n", kept,
                               document["complete"].get<bool>() ? "; more --steps may help" : ""));
    return written(a.json, json::format_value(document, 1) + '\n') && kept.empty();
  }
  bool all = written(a.json, json::format_value(document, 1) + '\n');
  std::vector<sim::ShownFile> shown;
  const auto file = [&](const std::string& to, std::string title, std::string use, std::string text) {
    all &= written(to, text);
    shown.push_back({std::move(title), std::move(use), std::move(text)});
  };
  const sim::Exporting how = exporting(a);
  file(a.table, "GCCL: tuning table", "GCCL_TUNING_FILE=table.json", write_tuning_table(table));
  if (has_nccl(question))
    file(a.nccl, "NCCL: for its example tuner plug-in", "NCCL_TUNER_CONFIG_FILE=tuner.csv", sim::nccl_csv(document));
  file(a.openmpi, "Open MPI: rules",
       "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename rules.txt",
       sim::openmpi_rules(document, how));
  file(a.openmpi_json, "Open MPI 6: rules", "mpirun --mca coll_tuned_dynamic_rules_filename rules.json",
       sim::openmpi_json(document, how));
  file(a.mpich, "MPICH: selection",
       "MPIR_CVAR_DEVICE_COLLECTIVES=none MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=mpich.json",
       sim::mpich_json(document, a.mpich_release == "4.0" ? sim::MpichRelease::v4_0 : sim::MpichRelease::v4_1));
  if (!a.html.empty()) all &= written(a.html, sim::tuning_page(document, shown, how));
  return all;
}

// Says what went wrong on the way. Whether nothing did.
bool report_failed(const nlohmann::json& document, bool journal) {
  for (const nlohmann::json& f : document["failed"])
    write_stderr(fmt::format("gccl: {}: {}; left out\n", f["at"].get<std::string>(),
                             printable_line(f["why"].get<std::string>())));
  if (document["failed"].empty()) return true;
  write_stderr(journal ? "gccl: the same command searches what was left out again; fewer --jobs and --steps need less "
                         "memory\n"
                       : "gccl: fewer --jobs and --steps need less memory; with --resume nothing is searched twice\n");
  return false;
}

// Says how often a library cannot be made to take the fastest algorithm.
void report_exports(const TuneArguments& a, const nlohmann::json& document) {
  for (const auto& [file, library] : {std::pair(&a.nccl, sim::Library::nccl),
                                      {&a.openmpi, sim::Library::openmpi},
                                      {&a.openmpi_json, sim::Library::openmpi},
                                      {&a.mpich, sim::Library::mpich}}) {
    if (file->empty()) continue;
    const std::size_t otherwise = sim::exported_otherwise(document, library, {sim::Operations::commute, 0}).size();
    if (otherwise > 0)
      write_stderr(fmt::format(
          "gccl: {}: at {} of {} places the fastest is a plan that {} cannot carry out; the file goes by the fastest "
          "of its own, if any\n",
          printable_line(*file), otherwise, document["cells"].size(), sim::kLibraryNames[std::size_t(library)]));
  }
  std::string rules;
  for (const std::string* file : {&a.openmpi, &a.openmpi_json})
    if (!file->empty()) rules += (rules.empty() ? "" : ", ") + printable_line(*file);
  if (rules.empty()) return;
  const sim::LeftToOpenMpi left = sim::left_to_openmpi(document, a.export_gain);
  if (left.as_good > 0)
    write_stderr(
        fmt::format("gccl: {}: {}\n", rules, sim::own_choices_text(left, document["cells"].size(), a.export_gain)));
  if (left.commuting > 0 && !a.commutative)
    write_stderr(fmt::format(
        "gccl: {}: at {} of {} places the fastest of Open MPI's is right only for operations that commute, which its "
        "rules cannot ask for; they leave these to Open MPI. --commutative names it\n",
        rules, left.commuting, document["cells"].size()));
}

// Null where mpirun or gccl launch has started no others.
std::unique_ptr<bench::Team> started_team(const Started& started) {
  if (started.alone) return nullptr;
  const bool mpi = started.backend == "mpi";
  const auto meet = reinterpret_cast<bench::TeamEntry>(runtime_plugin(
      mpi, "gccl_team", fmt::format("sharing a sweep out among {}'s ranks", mpi ? "mpirun" : "gccl launch")));
  std::string error;
  std::unique_ptr<bench::Team> team(meet("gccl tune", &error));
  if (!team) throw json::InputError(error);
  return team;
}

// One for each processor that this process may use, and that is no other rank's.
unsigned jobs_of(const bench::Team* team) {
  const ProcessorShare mine = processor_share();
  const auto here = std::min(std::uint32_t(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))), mine.granted);
  return std::clamp(here / (team ? team->ranks_here() : 1), 1u, std::max(1u, count_of(mine.bound)));
}

// Each rank keeps what it finds, as their machines may have no file in common.
std::string journal_of(const TuneArguments& a, const bench::Team* team) {
  return !team || team->rank() == 0 ? a.resume : fmt::format("{}.{}", a.resume, team->rank());
}

int tune(const TuneArguments& a) {
  ::signal(SIGPIPE, SIG_IGN);
  sim::SweepQuestion question = sweep_question(a);
  const Started started = started_by(process_environment());
  for (const auto& [option, f] : {std::pair("--html", &a.html),
                                  {"--resume", &a.resume},
                                  {"--table", &a.table},
                                  {"--export-nccl", &a.nccl},
                                  {"--export-openmpi", &a.openmpi},
                                  {"--export-openmpi-json", &a.openmpi_json},
                                  {"--export-mpich", &a.mpich}})
    if (*f == "-")
      throw json::InputError(
          fmt::format("{}: found \"-\", expected a file; --json alone can be written to standard output", option));
  std::vector<std::filesystem::path> inputs = files_of_cluster(a);
  if (!a.check_table.empty()) inputs.emplace_back(a.check_table);
  if (started.first)
    check_outputs({a.json, a.html, a.table, a.nccl, a.openmpi, a.openmpi_json, a.mpich, a.resume}, inputs);
  if (!a.nccl.empty() && !has_nccl(question))
    throw json::InputError(fmt::format(
        "--export-nccl: the parameters of {} have no \"nccl\" object that says which architecture its cards "
        "are of",
        question.cluster->name()));
  if (const Protocols& all = question.cluster->protocols(); !a.nccl.empty() && all.size() == 1 && all[0].name.empty())
    throw json::InputError(fmt::format(
        "--export-nccl: the parameters of {} name no protocols, expected NCCL's (LL, LL128, Simple), of which "
        "each rule has one",
        question.cluster->name()));
  const sim::Engines engines = simulation_engines(question.engine == sim::Engine::simgrid);
  question.program = sim::program_digest();
  std::unique_ptr<bench::Team> team = started_team(started);
  const bool first = !team || team->rank() == 0;
  sim::SweepOptions options{.jobs = a.jobs ? a.jobs : jobs_of(team.get()), .progress = {}};
  if (team)
    options.team = {team->rank(), team->ranks(), [&team](const std::string& mine) { return team->gather(mine); }};
  if (first && !a.quiet && isatty(STDERR_FILENO)) options.progress = show_progress;
  std::optional<sim::Journal> journal;
  if (!a.resume.empty()) {
    options.journal = &journal.emplace(journal_of(a, team.get()));
    if (journal->entries() > 0)
      write_stderr(fmt::format("gccl: {}: {} of the grid's places were finished before\n", printable_line(a.resume),
                               sim::known_cells(question, *journal)));
  }
  options.stop = &catch_interrupts();  // until here a signal ends the program at once
  nlohmann::json document = sim::sweep(question, engines, options);
  team.reset();  // the others need not wait for what the first one writes
  const bool interrupted = !document["complete"].get<bool>() && (*options.stop || document["failed"].empty());
  const int interrupted_by = interrupted_code() ? interrupted_code() : 128 + SIGINT;  // perhaps another rank was
  if (!first) return 0;
  if (interrupted)
    write_stderr(fmt::format(
        "{}gccl: interrupted; the outputs hold what was found until then{}\n", options.progress ? "\n" : "",
        journal ? fmt::format(", and so does {}: the same command goes on from there", printable_line(a.resume)) : ""));
  const bool found = report_failed(document, journal.has_value());
  if (journal && !journal->error().empty())
    write_stderr(fmt::format("gccl: {}: cannot be written: {}; what was found since is not in it\n",
                             printable_line(a.resume), journal->error()));
  nlohmann::json& exported = document["exported_otherwise"];
  for (std::size_t l = 0; l < sim::kLibraries; ++l)
    exported[std::string(sim::kLibraryNames[l])] = sim::exported_otherwise(document, sim::Library(l), exporting(a));
  const bool all = write_files(a, question, document);
  report_exports(a, document);
  if (a.json != "-") write_stdout(sim::tuning_text(document));
  return interrupted ? interrupted_by : !found ? 3 : all ? 0 : 2;
}

}  // namespace

void add_tune(Command& app, int& exit_code) {
  Command* command = app.add_subcommand(
      "tune", "Find the fastest algorithm for each call by simulation, and export that to NCCL and MPI");
  const auto a = std::make_shared<TuneArguments>();
  add_tune_options(*command, *a);
  command->examples({"gccl tune my-cluster.json --html tuning.html --table table.json",
                     "gccl tune polaris --collectives allreduce --ranks 64..512 --steps 1e7 --resume sweep.journal",
                     "mpirun -n 8 --map-by node --bind-to none gccl tune polaris --ranks 64..512 --table t.json"});
  command->callback([a, &exit_code] { exit_code = tune(*a); });
}

}  // namespace gccl
