// "max_recovery_us": from the first failure until all that are left work again.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_recovery_limit(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  e.limit = double(value.nanos(1e3)) / 1e3;
}

}  // namespace

extern const Check max_recovery_check{
    .key = "max_recovery_us",
    .read = read_recovery_limit,
    .demand = [](const Expectation& e) { return fmt::format("recovery_us <= {:.6g}", e.limit); },
    .judge = [](const Expectation& e, const ResultRows& rows,
                std::size_t i) { return judge_within(e, rows, i, "recovery_us", "nothing was recovered from"); }};

}  // namespace gccl::sim
