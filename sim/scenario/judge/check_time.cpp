// "max_time_us", "min_time_us": every selected result took at most, at least this long. Where the run's expectations
// say `"completed": false` of a result, its time is that until all ranks have returned.
#include <fmt/format.h>

#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {
namespace {

void read_time(const json::Node& value, const ScenarioRun&, Expectation& e) {
  e.limit = double(value.nanos(1e3)) / 1e3;
}

// The row has no time that the limit is about.
bool without_time(const ResultRow& row) { return !row.completed && !row.may_fail; }

Judgement at_most(const Expectation& e, const ResultRows& rows, std::size_t i) {
  if (without_time(rows[i])) return {rows.incomplete(i), false, kUnlimited};
  return {rows.time(i), rows[i].time_us <= e.limit, rows[i].time_us - e.limit};
}
Judgement at_least(const Expectation& e, const ResultRows& rows, std::size_t i) {
  if (without_time(rows[i])) return {rows.incomplete(i), false, kUnlimited};
  return {rows.time(i), rows[i].time_us >= e.limit, e.limit - rows[i].time_us};
}

}  // namespace

extern const Check max_time_check{
    .key = "max_time_us",
    .virtual_time = true,
    .read = read_time,
    .demand = [](const Expectation& e) { return fmt::format("time_us <= {:.6g}", e.limit); },
    .judge = at_most};
extern const Check min_time_check{
    .key = "min_time_us",
    .virtual_time = true,
    .read = read_time,
    .demand = [](const Expectation& e) { return fmt::format("time_us >= {:.6g}", e.limit); },
    .judge = at_least};

}  // namespace gccl::sim
