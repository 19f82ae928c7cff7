// The commands that weigh and compare: measurements, tuning, LLMs, months of failures. Half of the program's code, and
// nothing that playing a scenario needs.
#include <string_view>

#include "cli/analysis/step.hpp"
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"

namespace {

// This plug-in has the libraries' state for itself, but for signals.
void begin(gccl::Interrupts& interrupts) {
  gccl::share_catalogue();
  gccl::share_interrupts(interrupts);
}

}  // namespace

extern "C" gccl::AddCommand* gccl_analysis_command(const char* name, gccl::Interrupts& interrupts) {
  begin(interrupts);
#define GCCL_NONE(name)
#define GCCL_NAMED(command) \
  if (std::string_view(name) == #command) return &gccl::add_##command;
  GCCL_COMMANDS(GCCL_NONE, GCCL_NAMED)
#undef GCCL_NAMED
#undef GCCL_NONE
  return nullptr;
}

extern "C" void gccl_analysis_step(const gccl::RunArguments& a, const std::filesystem::path& file,
                                   gccl::Interrupts& interrupts, std::function<int()>* prepared) {
  begin(interrupts);
  *prepared = gccl::prepare_step(a, file);
}
