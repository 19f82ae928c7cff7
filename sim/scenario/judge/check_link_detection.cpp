// "max_link_detection_us": all ranks knew of each link that was found slow within this of the fault before.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {

extern const Check max_link_detection_check{
    .key = "max_link_detection_us",
    .virtual_time = true,
    .read =
        [](const json::Node& value, const ScenarioRun& run, Expectation& e) {
          demand_looks(value, run);
          read_time_limit(value, run, e);
        },
    .demand = [](const Expectation& e) { return fmt::format("link_detection_us <= {:.6g}", e.limit); },
    .judge = [](const Expectation& e, const ResultRows& rows,
                std::size_t i) { return judge_within(e, rows, i, "link_detection_us", "no link was found slow"); },
    .match = demand_reports};

}  // namespace gccl::sim
