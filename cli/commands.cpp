#include "cli/commands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/installation.hpp"
#include "cli/plugin.hpp"

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

// What to do where the plug-in is missing: from a build folder, or from an installation.
std::string how_to_build() {
  const std::filesystem::path folder = this_program().parent_path();
  std::error_code error;
  return std::filesystem::exists(folder / "CMakeCache.txt", error)
             ? fmt::format("cmake --build {} --target gccl_program", folder.string())
             : "cmake --install FOLDER";
}

// Where the plug-in is not built, a command that says so.
void add_of_analysis(Command& app, int& exit_code, const char* name) {
  if (has_plugin("analysis")) {
    reinterpret_cast<AnalysisCommand*>(analysis_plugin("gccl_analysis_command"))(name)(app, exit_code);
    return;
  }
  std::string typed = name;
  std::replace(typed.begin(), typed.end(), '_', '-');
  Command* command = app.add_subcommand(typed, fmt::format("Not built yet: {}", how_to_build()));
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
  return plugin("analysis", entry, "this part of the program is not built by ./quickstart but by " + how_to_build());
}

}  // namespace gccl
