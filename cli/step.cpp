#include "cli/step.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/engines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/run.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/load_authorities.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/llm/step_report.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;
namespace llm = sim::llm;

void check_step_options(const RunArguments& a, const llm::LlmWorkload& w) {
  if (!a.seeds.empty()) throw json::InputError("--seeds: for scenarios with faults; this is the step of an LLM");
  if (!a.csv.empty()) throw json::InputError("--csv: a step has no rows; --json has all of its result");
  for (const auto& [option, file] : {std::pair("--html", &a.html),
                                     {"--trace", &a.trace},
                                     {"--resume", &a.resume},
                                     {"--scenario-out", &a.scenario_out}})
    if (*file == "-")
      throw json::InputError(
          fmt::format("{}: found \"-\", expected a file; --json alone can be written to standard output", option));
  std::vector<std::filesystem::path> inputs{w.where.file()};
  for (const auto& file : files_of_cluster(w.cluster)) inputs.push_back(file);
  check_outputs({a.json, a.html, a.trace, a.resume, a.scenario_out}, inputs);
}

// As the options have it.
Json with_options(const RunArguments& a, Json document) {
  if (!a.engine.empty()) document["engine"] = name(engine_named(a.engine));
  if (!a.planner.empty()) {
    if (std::find(kPlanners.begin(), kPlanners.end(), a.planner) == kPlanners.end())
      throw json::InputError(fmt::format("--planner: found \"{}\"{}", a.planner, suggestion(a.planner, kPlanners)));
    document["planner"] = a.planner;
  }
  if (a.seed) document["seed"] = *a.seed;
  return document;
}

// The same file with changed values: messages name the file, and what was changed.
llm::LlmWorkload read_changed(const Json& document, const std::filesystem::path& file, const std::string& change) {
  try {
    return llm::read_workload(json::Node::parse(document.dump(), file));
  } catch (const json::InputError& e) {
    throw json::InputError(fmt::format("--what-if {}: {}", printable_line(change), e.what()));
  }
}

void write_scenario(const RunArguments& a, const llm::PlayedStep& s) {
  if (s.runs.empty()) throw json::InputError("--scenario-out: the step communicates nothing");
  write_output(a.scenario_out, json::format_value(llm::scenario_of(s.workload, s.runs), 1) + '\n');
}

}  // namespace

llm::Pricer::Options pricer_options(sim::Engine engine, unsigned jobs, bool quiet) {
  llm::Pricer::Options o{.engines = simulation_engines(engine == sim::Engine::simgrid), .jobs = jobs};
  if (const Status s = load_authorities([](const char* name) { return std::getenv(name); }, &o.authorities); !s.ok())
    throw json::InputError(s.text());
  if (!quiet && isatty(STDERR_FILENO)) o.progress = show_progress;
  return o;
}

int run_step(const RunArguments& a, const std::filesystem::path& file) {
  ::signal(SIGPIPE, SIG_IGN);
  const Json document = with_options(a, json::Node::load(file).raw());
  const llm::LlmWorkload w = llm::read_workload(json::Node::parse(document.dump(), file));
  check_step_options(a, w);
  std::vector<llm::LlmWorkload> others;
  for (const std::string& change : a.what_if)
    others.push_back(read_changed(llm::changed(document, change, "--what-if"), file, change));
  llm::Pricer::Options options = pricer_options(w.engine, a.jobs, a.quiet);
  for (const llm::LlmWorkload& other : others)
    if (other.engine == sim::Engine::simgrid) options.engines = simulation_engines(true);
  std::optional<sim::Journal> journal;
  if (!a.resume.empty()) options.journal = &journal.emplace(a.resume);
  options.stop = &catch_interrupts();
  llm::Pricer pricer(options);
  try {
    const auto step = llm::play_step(w, pricer);
    Json& result = step->result;
    for (std::size_t i = 0; i < others.size(); ++i) {
      const auto other = llm::play_step(others[i], pricer);
      result["what_if"].push_back({{"change", json::valid_text(a.what_if[i])}});
      for (const char* key :
           {"step_us", "tokens_per_s", "mfu_percent", "compute_us", "slowed_us", "exposed_us", "bubble_us", "kinds"})
        result["what_if"].back()[key] = other->result[key];
    }
    if (!a.scenario_out.empty()) write_scenario(a, *step);
    if (!a.json.empty()) write_output(a.json, json::format_value(result, 1) + '\n');
    if (!a.html.empty()) write_output(a.html, llm::step_page(*step));
    if (!a.trace.empty()) write_output(a.trace, llm::step_trace(*step));
    if (a.json != "-") write_stdout(llm::step_text(*step, a.quiet));
    return result["ok"].get<bool>() ? 0 : 1;
  } catch (const sim::Interrupted&) {
    write_stderr("gccl: interrupted\n");
    return interrupted_code();
  }
}

}  // namespace gccl
