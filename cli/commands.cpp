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

// Null where the plug-in is not built, or of another build.
const Analysis* analysis_if_usable() {
  try {
    return &analysis();
  } catch (const json::InputError&) {
    return nullptr;
  }
}

// Stands for a command of the plug-in where that cannot be used, and says so when it is typed.
void add_placeholder(Command& app, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  Command* command = app.add_subcommand(name, fmt::format("Not here yet: {}", advice()));
  command->prefix_command();
  command->callback([] { analysis(); });
}

}  // namespace

void add_commands(Command& app, int& exit_code, std::string_view typed) {
  const bool all = needs_analysis(typed);
  const Analysis* const usable = all ? analysis_if_usable() : nullptr;
#define GCCL_ADD(name) add_##name(app, exit_code);
#define GCCL_ADD_ANALYSIS(name)             \
  if (usable)                               \
    usable->command(#name)(app, exit_code); \
  else if (all)                             \
    add_placeholder(app, #name);
  GCCL_COMMANDS(GCCL_ADD, GCCL_ADD_ANALYSIS)
#undef GCCL_ADD_ANALYSIS
#undef GCCL_ADD
}

const Analysis& analysis() {
  const auto entry = reinterpret_cast<AnalysisEntry*>(
      plugin("analysis", "gccl_analysis", "this part of the program is not built by ./quickstart: " + advice()));
  return *entry(interrupts());
}

}  // namespace gccl
