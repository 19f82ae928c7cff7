// "max_detection_us": all survivors knew of each failure within this.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {

extern const Check max_detection_check{
    .key = "max_detection_us",
    .read = read_time_limit,
    .demand = [](const Expectation& e) { return fmt::format("detection_us <= {:.6g}", e.limit); },
    .judge = [](const Expectation& e, const ResultRows& rows,
                std::size_t i) { return judge_within(e, rows, i, "detection_us", "no failure was noticed"); }};

}  // namespace gccl::sim
