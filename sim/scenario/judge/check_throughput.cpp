// "min_throughput_after_percent": operations after the last fault are this fast, of how fast those before the first
// were.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_throughput(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  e.limit = value.number(0, 1e6);
  if (run.repeats * run.streams[0].size() < 2)
    value.fail("compares operations before the faults with those after them; add \"repeats\"");
}

Judgement judge_throughput(const Expectation& e, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& found = faults_of(rows, i).at("throughput_after_percent");
  if (found.is_null())
    return {fmt::format("no operation ended before the first fault, or none like it began after the last, for {}",
                        rows.name(i)),
            false, kUnlimited};
  const double percent = found.get<double>();
  return {fmt::format("{:.4g} % for {}", percent, rows.name(i)), percent >= e.limit * (1 - kRoundingPart),
          e.limit - percent};
}

}  // namespace

extern const Check throughput_check{
    .key = "min_throughput_after_percent",
    .virtual_time = true,
    .read = read_throughput,
    .demand = [](const Expectation& e) { return fmt::format("throughput_after_percent >= {:.6g}", e.limit); },
    .judge = judge_throughput};

}  // namespace gccl::sim
