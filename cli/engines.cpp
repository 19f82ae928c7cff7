#include "cli/engines.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

using SimGridEntry = void (*)(const sim::Workload&, sim::Outcome*);
SimGridEntry simgrid_entry = nullptr;

sim::Outcome run_by_simgrid(const sim::Workload& workload) {
  sim::Outcome outcome;
  simgrid_entry(workload, &outcome);
  return outcome;
}

}  // namespace

sim::Engine engine_named(const std::string& name) {
  const auto names = sim::engine_names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw json::InputError(fmt::format("--engine: found \"{}\"{}", name, suggestion(name, names)));
  return sim::Engine(at - names.begin());
}

sim::Engines simulation_engines(bool with_simgrid) {
  if (!with_simgrid) return {.model = sim::run_model, .simgrid = nullptr};
  simgrid_entry = reinterpret_cast<SimGridEntry>(
      plugin("simgrid_engine", "gccl_simgrid",
             "the simgrid engine needs SimGrid (libsimgrid-dev, then cmake --build FOLDER); --engine flow does not"));
  return {.model = sim::run_model, .simgrid = run_by_simgrid};
}

void show_progress(std::size_t done, std::size_t of) {
  const std::size_t width = 40, filled = done * width / of;
  std::string text = fmt::format("\r[{:<{}}] {}/{} ", std::string(filled, '#'), width, done, of);
  if (done == of) text += fmt::format("\r{:{}}\r", "", width + 30);
  write_stderr(text);
}

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 120;
}

}  // namespace gccl
