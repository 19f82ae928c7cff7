// "min_busbw_GBps": every selected result's bus bandwidth is at least this.
#include <fmt/format.h>

#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {
namespace {

void read_busbw(const json::Node& value, const ScenarioRun&, Expectation& e) { e.limit = value.number(0, 1e9); }

Judgement judge_busbw(const Expectation& e, const ResultRows& rows, std::size_t i) {
  if (!rows[i].completed) return {rows.incomplete(i), false, kUnlimited};
  const double found = rows[i].json->at("busbw_GBps").get<double>();
  return {fmt::format("{:.6g} GB/s for {}", found, rows.name(i)), found >= e.limit * (1 - kRoundingPart),
          e.limit - found};
}

}  // namespace

extern const Check min_busbw_check{
    .key = "min_busbw_GBps",
    .about = Check::About::single,
    .virtual_time = true,
    .read = read_busbw,
    .demand = [](const Expectation& e) { return fmt::format("busbw_GBps >= {:.6g}", e.limit); },
    .judge = judge_busbw};

}  // namespace gccl::sim
