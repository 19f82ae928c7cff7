// gccl doctor: from the ranks' dumps to who held up the others.
#include "sim/measured/doctor/doctor.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

struct DoctorArguments {
  std::vector<std::string> dumps;
  std::string json;
};

int doctor(const DoctorArguments& a) {
  check_outputs({a.json}, {a.dumps.begin(), a.dumps.end()});
  std::vector<sim::DumpOfRank> dumps;
  for (const std::string& file : a.dumps) dumps.push_back(sim::read_dump(file));
  const nlohmann::json document = sim::examined(dumps);
  const std::string text = json::format_value(document, 1) + '\n';
  if (!a.json.empty() && a.json != "-") write_output(a.json, text);
  write_stdout(a.json == "-" ? text : sim::doctor_text(document));
  return document["ok"].get<bool>() ? 0 : 1;
}

}  // namespace

// Sets exit_code to 1 where a rank is found that holds up the others.
void add_doctor(Command& app, int& exit_code) {
  Command* command = app.add_subcommand("doctor", "Merge the ranks' dumps, and name who held up the others");
  const auto a = std::make_shared<DoctorArguments>();
  command
      ->add_option("dumps", a->dumps,
                   "Dumps of GCCL_DUMP or GCCL_Dump, or of PyTorch's flight recorder, one of each rank")
      ->required()
      ->value("FILE");
  command
      ->add_option("--json", a->json,
                   "Write what was found as JSON; - for standard output, which then holds nothing else")
      ->value("FILE");
  command->examples({"gccl doctor /tmp/fr_*", "gccl doctor dump-0.json dump-1.json --json -"});
  command->callback([a, &exit_code] { exit_code = doctor(*a); });
}

}  // namespace gccl
