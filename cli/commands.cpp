#include "cli/commands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/installation.hpp"
#include "cli/interrupt.hpp"
#include "cli/plugin.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

bool needs_analysis(std::string_view typed) {
  if (typed == "--version" || typed == "-V") return false;
  if (typed == "completion" || typed == "help") return true;  // they show all commands
#define GCCL_OWN(name) \
  if (typed == #name) return false;
#define GCCL_NONE(name)
  GCCL_COMMANDS(GCCL_OWN, GCCL_NONE)
#undef GCCL_NONE
#undef GCCL_OWN
  return true;
}

// What to do where the plug-in is missing or old: in a build folder, or in an installation.
std::string advice() {
  const std::string folder = this_program().parent_path();
  std::error_code error;
  if (!std::filesystem::exists(folder + "/CMakeCache.txt", error)) return "install the whole tree again";
  const std::string quote = folder.find(' ') == std::string::npos ? "" : "'";
  return fmt::format("cmake --build {0}{1}{0} --target gccl_program", quote, folder);
}

// Where the plug-in is not built, or of another build, a command that says so.
void add_of_analysis(Command& app, int& exit_code, const char* name) {
  if (has_plugin("analysis")) try {
      auto* const command = reinterpret_cast<AnalysisCommand*>(analysis_plugin("gccl_analysis_command"));
      return command(name, interrupts())(app, exit_code);
    } catch (const json::InputError&) {  // said by the command, when it is typed
    }
  std::string typed = name;
  std::replace(typed.begin(), typed.end(), '_', '-');
  Command* command = app.add_subcommand(typed, fmt::format("Not here yet: {}", advice()));
  command->prefix_command();
  command->callback([] { analysis_plugin("gccl_analysis_command"); });
}

}  // namespace

void add_commands(Command& app, int& exit_code, std::string_view typed) {
  const bool all = needs_analysis(typed);
#define GCCL_ADD(name) add_##name(app, exit_code);
#define GCCL_ADD_ANALYSIS(name) \
  if (all) add_of_analysis(app, exit_code, #name);
  GCCL_COMMANDS(GCCL_ADD, GCCL_ADD_ANALYSIS)
#undef GCCL_ADD_ANALYSIS
#undef GCCL_ADD
}

void* analysis_plugin(const char* entry) {
  return plugin("analysis", entry, "this part of the program is not built by ./quickstart: " + advice());
}

}  // namespace gccl
