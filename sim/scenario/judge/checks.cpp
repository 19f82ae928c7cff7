#include "sim/scenario/judge/check.hpp"

// A line for each check.
// clang-format off
#define GCCL_CHECKS(line) \
  line(max_time_check) \
  line(min_time_check) \
  line(min_busbw_check) \
  line(correct_check) \
  line(fastest_check) \
  line(within_check) \
  line(completed_check) \
  line(dead_check) \
  line(max_detection_check) \
  line(max_recovery_check) \
  line(false_alarm_check) \
  line(exactly_once_check) \
  line(throughput_check) \
  line(slow_links_check) \
  line(max_link_detection_check) \
  line(slowest_check)
// clang-format on

namespace gccl::sim {

#define GCCL_DECLARE(check) extern const Check check;
GCCL_CHECKS(GCCL_DECLARE)
#undef GCCL_DECLARE

std::span<const Check* const> checks() {
#define GCCL_ADDRESS(check) &check,
  static constexpr const Check* kChecks[] = {GCCL_CHECKS(GCCL_ADDRESS)};
#undef GCCL_ADDRESS
  return kChecks;
}

}  // namespace gccl::sim
