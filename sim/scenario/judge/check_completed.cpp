// "completed": whether every operation ended on all ranks that are left; false where an error or a hang is expected.
#include "sim/scenario/judge/fault_result.hpp"

namespace gccl::sim {
namespace {

void read_completed(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  demand_faults(value, run);
  e.limit = value.boolean();
}

Judgement judge_completed(const Expectation& e, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& f = faults_of(rows, i);
  const bool completed = f.at("completed").get<bool>(), hangs = f.contains("hang");
  std::string found = completed ? "completed" : hangs ? f.at("hang").get<std::string>() : "ended with an error";
  if (!completed && !hangs && f.at("survivors") == 0) {
    const Rank out = f.at("out").get<Rank>();
    found = out == 0 ? "nobody is left" : fmt::format("{} ranks ended without a quorum", out);
  }
  // Where it is not to complete, an error that names the dead is what is wanted, and not a hang.
  return {fmt::format("{} for {}", found, rows.name(i)), e.limit ? completed : !completed && !hangs, 1};
}

}  // namespace

extern const Check completed_check{
    .key = "completed",
    .read = read_completed,
    .demand = [](const Expectation& e) -> std::string { return e.limit ? "completed" : "ends with an error, on all"; },
    .judge = judge_completed};

}  // namespace gccl::sim
