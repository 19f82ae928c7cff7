// "max_detection_us": all survivors knew of each failure within this.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_detection(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  e.limit = double(value.nanos(1e3)) / 1e3;
}

}  // namespace

extern const Check max_detection_check{
    .key = "max_detection_us",
    .read = read_detection,
    .demand = [](const Expectation& e) { return fmt::format("detection_us <= {:.6g}", e.limit); },
    .judge = [](const Expectation& e, const ResultRows& rows,
                std::size_t i) { return judge_within(e, rows, i, "detection_us", "no failure was noticed"); }};

}  // namespace gccl::sim
