// What an expectation can demand. A kind of check is one file that defines a Check, and its line in checks.cpp; its key
// also stands in scenario.schema.json and docs/formats.md.
#pragma once

#include <limits>
#include <span>

#include "sim/scenario/description/scenario.hpp"
#include "sim/scenario/judge/contest.hpp"
#include "sim/scenario/judge/expectation.hpp"

namespace gccl::sim {

// As far beyond a limit as can be: of rows that have no value to compare with it.
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Values that are computed may differ from stated ones by so much of them and be equal: 51.35 is 30 % more than 39.5.
constexpr double kRoundingPart = 1e-12;

// What one row came to.
struct Judgement {
  std::string found;
  bool ok = true;
  double excess = -kUnlimited;  // how far beyond the limit; of several rows the worst is reported
};

// The ranks that play a run on one of the scenario's clusters.
struct RunRanks {
  Engine engine{};
  const Cluster& cluster;
  std::span<const Card> cards;  // by rank, without spares
  Rank spares = 0;
  bool alone = true;  // the scenario has no other number of ranks, and no other cluster

  Rank size() const { return Rank(cards.size()); }
};

struct Check {
  std::string_view key;  // in "expect"
  enum class About : std::uint8_t {
    any,     // also runs of several collectives, which have one time
    single,  // a run of one collective
    rivals   // the same, and all rows that compete at once
  } about = About::any;
  bool virtual_time = false;  // about times, bandwidths or rates of the cluster, of which real ranks say nothing
  // Fills in what the value says. Throws json::InputError where it is wrong, or the run can never break or satisfy it.
  void (*read)(const json::Node& value, const ScenarioRun& run, Expectation& e);
  // What is demanded, after the filters: "time_us <= 5".
  std::string (*demand)(const Expectation& e);
  Judgement (*judge)(const Expectation& e, const ResultRows& rows, std::size_t i);
  // Before anything runs, of each world that it is about: throws json::InputError where it names ranks that are not
  // there, or could never hold with these. May be null.
  void (*match)(const Expectation& e, const RunRanks& ranks) = nullptr;
  // Before anything runs: throws json::InputError where the row could not be judged. May be null.
  void (*prepare)(const Expectation& e, const Scenario& scenario, const ResultRows& heads, std::size_t i) = nullptr;
};

// In the order in which the checks of one object are judged.
std::span<const Check* const> checks();

}  // namespace gccl::sim
