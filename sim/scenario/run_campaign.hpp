// Runs a campaign: every point is played in a child process of its own (play.hpp) and leaves a row (result/row.hpp);
// the rows are judged (judge/), and all of it makes one result document.
#pragma once

#include "sim/scenario/run/journal.hpp"
#include "sim/scenario/run/play.hpp"
#include "sim/scenario/run/pool.hpp"

namespace gccl::sim {

struct RunOptions {
  unsigned jobs = 1;                                               // children at once
  bool trace = false;                                              // record the first point's trace
  std::function<void(std::size_t done, std::size_t of)> progress;  // may be empty
  const StopFlag* stop = nullptr;
  Journal* journal = nullptr;          // points that it holds are not simulated again, others are added as they finish
  std::vector<std::string> keys = {};  // with a journal: point_keys(campaign)
};

struct ScenarioResult {
  nlohmann::json document;  // "gccl/result/1"
  std::string trace;        // of the first point; Chrome trace format

  bool ok() const { return document.at("ok").get<bool>(); }
};

// What the rows of all points come to; marks the fastest in them.
struct JudgedRows {
  nlohmann::json choices, expectations;
  bool ok = true;
};
JudgedRows judge_rows(const Campaign& campaign, std::vector<nlohmann::json>& rows);

// The rows are in the campaign's order whatever finishes first; the points with the most steps start first. Throws
// JobFailed or SystemRefused (their texts name the point), and Interrupted.
ScenarioResult run_campaign(const Campaign& campaign, const Engines& engines, const RunOptions& options);

}  // namespace gccl::sim
