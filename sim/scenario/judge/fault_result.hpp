// What checks on faults have in common.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/base/counted.hpp"
#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {

inline void demand_faults(const json::Node& value, const ScenarioRun& run) {
  if (!run.plays_faults()) value.fail("is about what comes of faults; the run has neither \"faults\" nor \"recovery\"");
}

// A check that is either demanded or left out.
inline void demand_true(const json::Node& value, const ScenarioRun& run) {
  demand_faults(value, run);
  if (!value.boolean()) value.fail("found false, expected true; leave it out where it is not demanded");
}

inline void demand_looks(const json::Node& value, const ScenarioRun& run) {
  demand_faults(value, run);
  if (run.recovery.link_slow == 0)
    value.fail("is about slow links, which nobody looks for; state \"link_slow\" in \"recovery\"");
}

// Spares have the numbers behind the ranks.
inline void demand_rank(const json::Node& rank, const RunRanks& ranks) {
  const Rank n = ranks.size() + ranks.spares, found = Rank(rank.integer(0, kRanksMax - 1));
  if (found >= n)
    rank.fail(fmt::format("found rank {}, expected one below {}{}{}", found, n,
                          ranks.spares ? " (with the spares)" : "",
                          ranks.alone ? "" : "; \"cluster\" and \"ranks\" beside it say which results it is about"));
}

// Fewer ranks than three do not know what their links should reach (docs/faults.md).
inline void demand_reports(const Expectation& e, const RunRanks& ranks) {
  if (ranks.size() < 3)
    e.where.fail(fmt::format("is about slow links, of which {} say nothing; expected 3 ranks at least",
                             counted(ranks.size(), "rank")));
}

inline const nlohmann::json& faults_of(const ResultRows& rows, std::size_t i) { return rows[i].json->at("faults"); }

// The limit of a check on a time, in microseconds.
inline void read_time_limit(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  e.limit = double(value.nanos(1e3)) / 1e3;
  e.none_holds = std::ranges::any_of(run.faults, [](const auto& f) { return f.first.drawn(); });
}

// A time of the result against the limit in microseconds: none is as bad as any, but where faults are drawn.
inline Judgement judge_within(const Expectation& e, const ResultRows& rows, std::size_t i, const char* key,
                              const char* none) {
  const nlohmann::json& found = faults_of(rows, i).at(key);
  if (found.is_null())
    return {fmt::format("{} for {}", none, rows.name(i)), e.none_holds, e.none_holds ? -kUnlimited : kUnlimited};
  const double us = found.get<double>();
  return {fmt::format("{:.6g} us for {}", us, rows.name(i)), us <= e.limit, us - e.limit};
}

inline std::string rank_list(const nlohmann::json& ranks) {
  return ranks.empty() ? "nobody" : json::format_value(ranks);
}

}  // namespace gccl::sim
