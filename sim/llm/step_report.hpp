// A step's result for people: tables, a page, a trace.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/llm/step.hpp"

namespace gccl::sim::llm {

// The text of "gccl/step/1": what the step's time went to, the communications, the what-ifs, expectations.
std::string step_text(const PlayedStep& step, bool quiet);
// Which stage needs more memory than the workload's cards have, and how much; empty where all fit.
std::string memory_missing(const PlayedStep& step);
// The algorithms of a communication's calls, and which of the environment's variables chose them in place of the
// planner.
std::string algorithms_text(const nlohmann::json& calls);
// By how much a step takes longer; "-" where it took no time before.
std::string change_text(double before_us, double after_us);
// Each row once. Several that are the same in all cells are most of the messages between many ranks; the last cell says
// how many they are.
std::vector<std::vector<std::string>> without_repetition(const std::vector<std::vector<std::string>>& rows);
// Self-contained HTML: the same, a bar for each stage, the timeline of the stages and a cut-out of one.
std::string step_page(const PlayedStep& step);
// For ui.perfetto.dev and chrome://tracing: a process for each stage, a thread for each of its queues. At most
// kTraceTasks tasks of the stages from the first on; the event "gccl_trace" says how many are left out.
constexpr std::size_t kTraceTasks = 400'000;
std::string step_trace(const PlayedStep& step);

}  // namespace gccl::sim::llm
