// The commands that weigh and compare: measurements, tuning, LLMs, months of failures. Half of the program's code, and
// nothing that playing a scenario needs.
#include <string_view>

#include "cli/analysis/step.hpp"
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"

namespace {

// This plug-in has the libraries' state for itself.
void begin() {
  static const bool once = (gccl::share_catalogue(), true);
  (void)once;
}

}  // namespace

extern "C" gccl::AddCommand* gccl_analysis_command(const char* name) {
  begin();
#define GCCL_NONE(name)
#define GCCL_NAMED(command) \
  if (std::string_view(name) == #command) return &gccl::add_##command;
  GCCL_COMMANDS(GCCL_NONE, GCCL_NAMED)
#undef GCCL_NAMED
#undef GCCL_NONE
  return nullptr;
}

extern "C" void gccl_analysis_step(const gccl::RunArguments& a, const std::filesystem::path& file,
                                   std::function<int()>* prepared) {
  begin();
  *prepared = gccl::prepare_step(a, file);
}
