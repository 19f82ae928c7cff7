// Plays one point of a campaign on an engine.
#pragma once

#include <deque>

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

// What plays workloads; by value so that the simulator's library does not depend on SimGrid.
struct Engines {
  Outcome (*model)(const Workload&);
  Outcome (*simgrid)(const Workload&);
  Outcome (*flow)(const Workload&) = run_flow;
  Outcome (*protocol)(const Workload&) = run_protocol;
  std::function<Outcome(const Workload&)> real = {};  // processes of this machine
};

// A workload and what its calls point to.
struct PreparedWorkload {
  Workload workload;
  std::vector<std::unique_ptr<CountTable>> tables;
  std::unique_ptr<FaultPlan> faults;
  std::deque<Protocol> protocols;  // of operations with corrections
};

// Refers to both as long as it lives. Operations are numbered stream by stream, repetition by repetition, part by part,
// communicator by communicator.
PreparedWorkload prepare(const Campaign& campaign, const Point& point);

// What came out of one point.
struct Played {
  Outcome outcome;
  double peak_rss_MB = 0;  // of the process that played it
  std::string trace;       // Chrome trace, when asked for
};

constexpr Rank kTraceRanks = 64;

// Throws std::runtime_error when the schedules cannot make progress. With SimGrid at most once per process.
Played play(const Campaign& campaign, const Point& point, const Engines& engines, bool trace);

}  // namespace gccl::sim
