#include "libgccl/schedule/replay_order.hpp"

#include <map>

namespace gccl {

std::optional<std::vector<Step>> replay_order(Schedule schedule) {
  std::vector<Step> steps;
  std::map<Rank, std::size_t> sent;  // messages by peer
  while (const Step* s = schedule.next()) {
    if (s->idle()) continue;
    if (steps.size() == kReplayStepsMax) return std::nullopt;
    std::size_t at = steps.size();
    if (s->op == Op::send) {
      if (++sent[s->peer] > kReplayMessagesMax) return std::nullopt;
      while (at > 0 && steps[at - 1].op != Op::send && !conflicts(*s, steps[at - 1])) --at;
    }
    steps.insert(steps.begin() + std::ptrdiff_t(at), *s);
  }
  return steps;
}

}  // namespace gccl
