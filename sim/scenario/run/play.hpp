// Plays one point of a plan on an engine and tells what came out, as one row of "gccl/result/1".
#pragma once

#include <nlohmann/json.hpp>

#include "sim/scenario/plan/plan.hpp"

namespace gccl::sim {

// What plays workloads; by value so that the simulator's library does not depend on SimGrid.
struct Engines {
  Outcome (*model)(const Workload&);
  Outcome (*simgrid)(const Workload&);
};

// A workload and what its calls point to.
struct PreparedWorkload {
  Workload workload;
  std::vector<std::unique_ptr<CountTable>> tables;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>
      parts;  // per stream and task: its operations, [first, last)
};

PreparedWorkload prepare(const Plan& plan, const Point& point);

struct Played {
  nlohmann::json row;
  std::string trace;  // Chrome trace, when asked for
};

constexpr Rank kTraceRanks = 64;

// Throws std::runtime_error when the schedules cannot make progress. With SimGrid at most once per process.
Played play(const Plan& plan, const Point& point, const Engines& engines, bool trace);

// The fields of a row that say what the point is; the others say what came out.
nlohmann::json row_head(const Plan& plan, const Point& point);

// "allreduce ring, 1 MiB, 8 ranks of DGX H100 (model)": for messages.
std::string describe(const Plan& plan, const Point& point);

}  // namespace gccl::sim
