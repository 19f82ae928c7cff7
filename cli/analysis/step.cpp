#include "cli/analysis/step.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/authorities.hpp"
#include "cli/engines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/resumed.hpp"
#include "cli/run.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/llm/step_report.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;
namespace llm = sim::llm;

void check_step_options(const RunArguments& a, std::span<const llm::LlmWorkload> steps) {
  if (!a.seeds.empty()) throw json::InputError("--seeds: for scenarios with faults; this is the step of an LLM");
  for (const auto& [option, given] : {std::pair("--transport", !a.transport.empty()), {"--namespaces", a.namespaces}})
    if (given)
      throw json::InputError(fmt::format("{}: for scenarios on real ranks; this is the step of an LLM", option));
  if (!a.csv.empty()) throw json::InputError("--csv: a step has no rows; --json has all of its result");
  for (const auto& [option, file] : {std::pair("--html", &a.html),
                                     {"--trace", &a.trace},
                                     {"--resume", &a.resume},
                                     {"--scenario-out", &a.scenario_out}})
    if (*file == "-")
      throw json::InputError(
          fmt::format("{}: found \"-\", expected a file; --json alone can be written to standard output", option));
  check_outputs({a.json, a.html, a.trace, a.resume, a.scenario_out}, files_of_steps(steps));
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

// What is wrong with the same file with changed values names the file, and what was changed; of the file as it is
// `change` is empty.
template <class Do>
auto blaming(const std::string& change, Do f) {
  try {
    return f();
  } catch (const json::InputError& e) {
    if (change.empty()) throw;
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
  o.authorities = authorities_of_environment();
  if (!quiet && isatty(STDERR_FILENO)) o.progress = show_progress;
  return o;
}

std::vector<std::filesystem::path> files_of_steps(std::span<const llm::LlmWorkload> steps) {
  std::vector<std::filesystem::path> all;
  for (const llm::LlmWorkload& w : steps)
    for (auto& file : llm::files_of_workload(w))
      if (std::ranges::find(all, file) == all.end()) all.push_back(std::move(file));
  if (auto table = tuning_file_of_environment()) all.push_back(std::move(*table));
  return all;
}

namespace {

// A step and what it is with each change, once their mistakes are ruled out.
struct Steps {
  RunArguments arguments;
  std::vector<std::string> changes;     // the first is none
  std::vector<llm::LlmWorkload> steps;  // of each change
  llm::Pricer::Options options;

  int play();
};

int Steps::play() {
  const RunArguments& a = arguments;
  std::optional<sim::Journal> journal;
  if (!a.resume.empty()) options.journal = &journal.emplace(a.resume);
  options.stop = &catch_interrupts();
  llm::Pricer pricer(options);
  try {
    const auto step = llm::play_step(steps[0], pricer);
    Json& result = step->result;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      const auto other = blaming(changes[i], [&] { return llm::play_step(steps[i], pricer); });
      result["what_if"].push_back({{"change", json::valid_text(changes[i])}});
      for (const char* key :
           {"step_us", "tokens_per_s", "mfu_percent", "compute_us", "slowed_us", "exposed_us", "bubble_us", "kinds"})
        result["what_if"].back()[key] = other->result[key];
    }
    if (journal) say_known(*journal, pricer.keys()), say_unwritten(*journal);
    if (!a.json.empty()) write_output(a.json, json::format_value(result, 1) + '\n');
    if (!a.html.empty()) write_output(a.html, llm::step_page(*step));
    if (!a.trace.empty()) write_output(a.trace, llm::step_trace(*step));
    if (!a.scenario_out.empty()) write_scenario(a, *step);
    if (a.json != "-") write_stdout(llm::step_text(*step, a.quiet));
    return result["ok"].get<bool>() ? 0 : 1;
  } catch (const sim::Interrupted&) {
    if (journal) say_unwritten(*journal);
    write_stderr(journal ? fmt::format("gccl: interrupted; what was finished is in {}: the same command goes on from "
                                       "there\n",
                                       printable_line(a.resume))
                         : "gccl: interrupted\n");
    return interrupted_code();
  } catch (...) {
    if (journal) say_unwritten(*journal);
    throw;
  }
}

}  // namespace

std::function<int()> prepare_step(const RunArguments& a, const std::filesystem::path& file) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto s = std::make_shared<Steps>(Steps{a, {""}, {}, {}});
  const Json document = with_options(a, json::Node::load(file).raw());
  s->steps.push_back(llm::read_workload(json::Node::parse(document.dump(), file)));
  for (const std::string& change : a.what_if) {
    const Json other = llm::changed(document, change, "--what-if");
    s->steps.push_back(blaming(change, [&] {
      if (other.value("expect", Json()) != document.value("expect", Json()))
        throw json::InputError("\"expect\" is judged of the step without changes alone");
      return llm::read_workload(json::Node::parse(other.dump(), file));
    }));
    blaming(change, [&] { llm::check_layer_times(s->steps[0], s->steps.back(), change); });
    s->changes.push_back(change);
  }
  check_step_options(a, s->steps);
  s->options = pricer_options(s->steps[0].engine, a.jobs, a.quiet);
  if (std::ranges::any_of(s->steps, [](const llm::LlmWorkload& w) { return w.engine == sim::Engine::simgrid; }))
    s->options.engines = simulation_engines(true);
  llm::Pricer pricer(s->options);
  for (std::size_t i = 0; i < s->steps.size(); ++i)  // whether its cluster has the cards
    blaming(s->changes[i], [&] { return pricer.world(s->steps[i]); });
  return [s] { return s->play(); };
}

}  // namespace gccl
