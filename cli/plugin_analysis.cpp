// The commands that weigh and compare: measurements, tuning, LLMs, months of failures. Half of the program's code, and
// nothing that playing a scenario needs.
#include <string_view>

#include "cli/analysis/step.hpp"
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"

namespace gccl {
namespace {

AddCommand* command(std::string_view name) {
#define GCCL_NONE(other)
#define GCCL_NAMED(known) \
  if (name == #known) return &add_##known;
  GCCL_COMMANDS(GCCL_NONE, GCCL_NAMED)
#undef GCCL_NAMED
#undef GCCL_NONE
  return nullptr;
}

constexpr Analysis kAnalysis{command, prepare_step};

}  // namespace
}  // namespace gccl

// This plug-in has the libraries' state for itself, but for signals.
extern "C" const gccl::Analysis* gccl_analysis(gccl::Interrupts& interrupts) {
  gccl::share_catalogue();
  gccl::share_interrupts(interrupts);
  return &gccl::kAnalysis;
}
