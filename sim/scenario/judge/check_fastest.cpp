// "fastest": NAME: at every selected point this algorithm is the fastest, or as fast.
#include <fmt/format.h>

#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {
namespace {

void read_fastest(const json::Node& value, const ScenarioRun& run, Expectation& e) {
  if (e.algorithm) value.fail("\"fastest\" compares all algorithms of the run; leave \"algorithm\" out");
  e.subject = read_algorithm(value, run, "");
}

Judgement judge_fastest(const Expectation& e, const ResultRows& rows, std::size_t i) {
  const auto [best, subject, end] = rows.rivals(i, e.subject);
  if (subject == end) return {fmt::format("{} cannot serve this call", e.subject), false, kUnlimited};
  if (!rows[subject].completed) return {rows.incomplete(subject), false, kUnlimited};
  const double behind = rows[subject].time_us - rows[best].time_us;
  if (behind <= 0) return {rows.time(subject), true, 0};
  return {fmt::format("{}, {:.6g} us for {}", rows.time(best), rows[subject].time_us, e.subject), false, behind};
}

}  // namespace

extern const Check fastest_check{.key = "fastest",
                                 .about = Check::About::rivals,
                                 .virtual_time = true,
                                 .read = read_fastest,
                                 .demand = [](const Expectation& e) { return fmt::format("fastest is {}", e.subject); },
                                 .judge = judge_fastest};

}  // namespace gccl::sim
