// "correct": true: no wrong element, of a run whose payload is checked.
#include <fmt/format.h>

#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {
namespace {

void read_correct(const json::Node& value, const ScenarioRun& run, Expectation&) {
  if (!value.boolean()) value.fail("found false, expected true");
  if (!run.payload) value.fail("the run does not check its elements; add \"payload\": \"verify\"");
}

Judgement judge_correct(const Expectation&, const ResultRows& rows, std::size_t i) {
  const nlohmann::json& found = rows[i].json->at("wrong");
  if (found.is_null()) return {rows.incomplete(i), false, 0};
  const auto wrong = found.get<std::uint64_t>();
  return {fmt::format("{} for {}", wrong ? fmt::format("{} wrong elements", wrong) : "no wrong element", rows.name(i)),
          wrong == 0, double(wrong)};
}

}  // namespace

extern const Check correct_check{.key = "correct",
                                 .read = read_correct,
                                 .demand = [](const Expectation&) -> std::string { return "every element right"; },
                                 .judge = judge_correct};

}  // namespace gccl::sim
