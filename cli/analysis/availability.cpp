// gccl availability: how much of a cluster's time goes into work that is kept, over months of failures.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/availability/study.hpp"

namespace gccl {
namespace {

namespace fs = std::filesystem;

struct AvailabilityArguments {
  std::string study, json, html;
};

// A file beside the study, or the name of a shipped one.
std::string rates_file(const json::Node& name) {
  std::error_code error;
  if (fs::is_regular_file(name.path(), error)) return name.path().string();
  std::vector<std::string> known;
  for (const fs::path& folder : catalogue_folders("cost-models"))
    for (const auto& entry : fs::directory_iterator(folder / "failures", error)) {
      if (entry.path().stem() == name.string()) return entry.path().string();
      known.push_back(entry.path().stem().string());
    }
  std::sort(known.begin(), known.end());
  const std::vector<std::string_view> names(known.begin(), known.end());
  name.fail(fmt::format("there is no file {}{}", name.path().string(), suggestion(name.string(), names)));
}

int study_availability(const AvailabilityArguments& a) {
  if (a.json == "-" && a.html == "-")
    throw json::InputError("only one of --json and --html can be written to standard output");
  std::vector<fs::path> inputs{find_shipped("availability", a.study)};
  const sim::AvailabilityStudy study = sim::read_study(json::Node::load(inputs[0]), [&](const json::Node& name) {
    inputs.emplace_back(rates_file(name));
    return inputs.back().string();
  });
  check_outputs({a.json, a.html}, inputs);
  const nlohmann::json result = sim::availability_json(study, sim::simulate(study));
  if (!a.json.empty()) write_output(a.json, json::format_value(result, 1) + '\n');
  if (!a.html.empty()) write_output(a.html, sim::availability_html(result));
  if (a.json != "-" && a.html != "-") write_stdout(sim::availability_text(result));
  return result["ok"].get<bool>() ? 0 : 1;
}

}  // namespace

// Sets exit_code to 1 where an expectation of the study is broken.
void add_availability(Command& app, int& exit_code) {
  Command* command =
      app.add_subcommand("availability", "Goodput over months of failures: checkpoints, spares, policies");
  const auto a = std::make_shared<AvailabilityArguments>();
  command->add_option("study", a->study, "A study, or the name of a shipped one: availability/llama3-405b")
      ->required()
      ->value("STUDY");
  command->add_option("--html", a->html, "Write a report with pictures")->value("FILE");
  command
      ->add_option("--json", a->json, "Write the result as JSON; - for standard output, which then holds nothing else")
      ->value("FILE");
  command->examples({"gccl availability availability/llama3-405b --html availability.html"});
  command->callback([a, &exit_code] { exit_code = study_availability(*a); });
}

}  // namespace gccl
