// gccl plan-parallel: the parallel sizes that fit the memory, ranked by what a step takes with them.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "cli/analysis/step.hpp"
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/engines.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "libgccl/base/counted.hpp"
#include "libgccl/base/limits.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/llm/parallel_plan.hpp"

namespace gccl {
namespace {

namespace llm = sim::llm;

struct PlanParallelArguments {
  std::string workload, json;
  std::optional<std::int64_t> ranks;
  double memory_GB = 0;
  unsigned tensor = 8, context = 1, micro = 4, played = 8;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  bool quiet = false;
};

int plan(const PlanParallelArguments& a) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::filesystem::path file = find_shipped("workloads", a.workload);
  const json::Node node = json::Node::load(file);
  const llm::LlmWorkload w = llm::read_workload(node);
  if (w.chakra)
    node.at("chakra").fail(
        "traces hold for the one way in which they were recorded; expected a workload with \"model\"");
  check_outputs({a.json}, files_of_steps({&w, 1}));
  if (w.phase != sim::llm::Phase::training)
    node.at("phase").fail("expected \"training\"; it has no other parallel sizes to plan");
  if (w.compute.forward_us)
    node.at("compute")
        .at("layer_us")
        .fail("times of layers hold for one way to cut them up alone; expected \"card_TFLOPS\" and \"efficiency\"");
  llm::ParallelQuestion q{.document = node.raw(), .file = file};
  if (a.ranks)
    if (const auto cluster = load_cluster(w.cluster); *a.ranks > std::int64_t(cluster->cards()))
      throw UsageError(fmt::format("--ranks: found {}, and {} has {}", *a.ranks, cluster->name(),
                                   counted(cluster->cards(), "card")));
  q.ranks = a.ranks ? Rank(*a.ranks) : w.parallel.ranks();
  q.memory_GB = a.memory_GB > 0 ? a.memory_GB : w.memory_GB;
  if (q.memory_GB == 0)
    throw json::InputError(
        fmt::format("{}: \"memory_GB\" is not stated; expected it there, or --memory-gb", file.string()));
  q.tensor_max = a.tensor;
  q.context_max = std::max<Rank>(a.context, w.parallel.context);
  q.micro_max = a.micro;
  q.played = a.played;
  q.document.erase("expect");
  llm::Pricer::Options options = pricer_options(w.engine, a.jobs, true);
  options.stop = &catch_interrupts();
  llm::Pricer pricer(options);
  try {
    const bool shown = !a.quiet && isatty(STDERR_FILENO);
    const auto progress = [&](std::size_t done, std::size_t of) {
      if (*options.stop) throw sim::Interrupted();
      if (shown) show_progress(done, of);
    };
    const nlohmann::json found = llm::plan_parallel(q, pricer, progress);
    if (!a.json.empty()) write_output(a.json, json::format_value(found, 1) + '\n');
    if (a.json != "-") write_stdout(llm::parallel_plan_text(found));
    return 0;
  } catch (const sim::Interrupted&) {
    write_stderr("gccl: interrupted\n");
    return interrupted_code();
  }
}

}  // namespace

void add_plan_parallel(Command& app, int& exit_code) {
  Command* command = app.add_subcommand("plan-parallel",
                                        "Rank the parallel sizes of an LLM's training step that fit the cards' memory");
  const auto a = std::make_shared<PlanParallelArguments>();
  command->add_option("workload", a->workload, "File of a workload, or the name of a shipped one (gccl list workloads)")
      ->required();
  command->add_option("--ranks", a->ranks, "Instead of as many as the workload has")->check(Range{1, kRanksMax});
  command->add_option("--memory-gb", a->memory_GB, "Memory of a card, instead of the workload's")
      ->check(Range{0.001, 1e9});
  command->add_option("--tensor", a->tensor, "At most so many tensor ranks")
      ->check(Range{1, 1024})
      ->capture_default_str();
  command->add_option("--context", a->context, "At most so many context ranks, or as many as the workload has")
      ->check(Range{1, 1024})
      ->capture_default_str();
  command->add_option("--micro", a->micro, "At most so many sequences in a micro-batch")
      ->check(Range{1, 4096})
      ->capture_default_str();
  command->add_option("--top", a->played, "So many of the best by closed forms are played")
      ->check(Range{1, 1000})
      ->capture_default_str();
  command->add_option("--json", a->json, "Write all ways as JSON; - for standard output, which then holds nothing else")
      ->value("FILE");
  command->add_option("--jobs", a->jobs, "Communications simulated at once (default: one per core)")
      ->check(Range{1, 1024});
  command->add_flag("--quiet", a->quiet, "No progress");
  command->examples(
      {"gccl plan-parallel llama3-405b-16k --ranks 1024", "gccl plan-parallel my-step.json --memory-gb 40 --top 20"});
  command->callback([a, &exit_code] { exit_code = plan(*a); });
}

}  // namespace gccl
