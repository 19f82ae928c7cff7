// gccl compare: what differs between two results, steps of LLMs, sweeps or tuning tables.
#include "sim/tuning/compare.hpp"

#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace gccl {
namespace {

struct CompareArguments {
  std::string before, after, json;
  double threshold = 5;
};

int compare_files(const CompareArguments& a) {
  check_outputs({a.json}, {a.before, a.after});
  const json::Node before = json::Node::load(a.before), after = json::Node::load(a.after);
  const nlohmann::json c = sim::compare(before, after, a.threshold);
  if (!a.json.empty()) write_output(a.json, json::format_value(c, 1) + '\n');
  if (a.json != "-") write_stdout(sim::comparison_text(c));
  if (c["times"] == 0)
    write_stderr(
        "gccl: no times were compared: where the tables speak of the same calls their times are of other sizes\n");
  return c["ok"].get<bool>() ? 0 : 1;
}

}  // namespace

// Sets exit_code to 1 where something is slower by more than the threshold, or is no longer right.
void add_compare(Command& app, int& exit_code) {
  Command* command =
      app.add_subcommand("compare", "What got slower between two results, steps of LLMs, sweeps or tuning tables");
  const auto a = std::make_shared<CompareArguments>();
  command->add_option("before", a->before, "JSON of gccl run or gccl tune, or a tuning table")
      ->required()
      ->value("BEFORE");
  command->add_option("after", a->after, "The same, later")->required()->value("AFTER");
  command
      ->add_option("--threshold", a->threshold,
                   "Exit with 1 where something takes more than so many percent longer, or is no longer right")
      ->check(Range{0, 1e6})
      ->capture_default_str();
  command->add_option("--json", a->json, "Write all differences as JSON; - for standard output")->value("FILE");
  command->examples({"gccl compare before.json after.json --threshold 2"});
  command->callback([a, &exit_code] { exit_code = compare_files(*a); });
}

}  // namespace gccl
