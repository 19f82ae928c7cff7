// "max_recovery_us": from the first failure until all that are left work again.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {

extern const Check max_recovery_check{
    .key = "max_recovery_us",
    .read = read_time_limit,
    .demand = [](const Expectation& e) { return fmt::format("recovery_us <= {:.6g}", e.limit); },
    .judge = [](const Expectation& e, const ResultRows& rows,
                std::size_t i) { return judge_within(e, rows, i, "recovery_us", "nothing was recovered from"); }};

}  // namespace gccl::sim
