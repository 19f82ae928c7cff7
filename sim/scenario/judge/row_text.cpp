#include "sim/scenario/judge/row_text.hpp"

#include <fmt/format.h>

#include "libgccl/base/counted.hpp"

namespace gccl::sim {

std::string describe(const Scenario& scenario, const nlohmann::json& head) {
  const ScenarioRun& run = scenario.runs[head.at("run").get<std::size_t>()];
  std::string what =
      fmt::format("{} of {} collectives", run.kind == ScenarioRun::Kind::sequence ? "sequence" : "concurrent run",
                  run.streams[0].size());
  if (run.kind == ScenarioRun::Kind::collective)
    what = fmt::format("{} {}, {}", name(run.task().kind), head.at("algorithm").get_ref<const std::string&>(),
                       json::format_bytes(head.at("bytes").get<std::uint64_t>()));
  return fmt::format("{}, {} of {} ({})", what, counted(head.at("world_ranks").get<std::uint64_t>(), "rank"),
                     head.at("cluster").get_ref<const std::string&>(), head.at("engine").get_ref<const std::string&>());
}

std::string lateness(const nlohmann::json& row) {
  if (!row.contains("faults") || !row["faults"].contains("late_us")) return "";
  const double ms = row["faults"]["late_us"].get<double>() * row["faults"]["stretch"].get<double>() / 1e3;
  return fmt::format("; this machine was up to {:.3g} ms late with what was due", ms);
}

}  // namespace gccl::sim
