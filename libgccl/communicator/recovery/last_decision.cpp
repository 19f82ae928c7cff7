// How a rank that leaves makes sure that the others have what it has decided with them. A decision is sent once, and
// whom it has not reached asks: ranks that have left do not answer, and those of other machines cannot tell that from
// silence, so one lost datagram would cost a rank that is well.
//
//   rank 0 leaves     ---- decided 2, answer? ---->  rank 1 has missed the second decision
//                     <--- decided 1 --------------
//                     <--- ask --------------------
//                     ---- the decision ---------->
//                     ---- decided 2, answer? ---->
//                     <--- decided 2 --------------
//
// It asks all once, also those that have said what they have: where all leave at once, each learns that from what the
// others ask.
#include <algorithm>

#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/recovery/recovery.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kQuestionNs = 2 * kNsPerMs, kQuestionNsMax = 20 * kNsPerMs;
constexpr std::int64_t kLeaveMsMax = 1000;  // one that is silent for so long has failed, or will be found to have

}  // namespace

// Those that may need this rank's answers. One that takes part in nothing any more gives none.
fault::RankSet Recovery::may_ask(const Group& g) {
  if (g.decided == 0 || !g.broken.ok() || g.membership->out() != fault::Membership::Out::no) return {};
  return g.membership->members() - g.membership->failures().failed - fault::RankSet{g.members.rank};
}

fault::RankSet Recovery::undecided(const Group& g) {
  fault::RankSet all = may_ask(g);
  for (const auto& [r, decided] : g.decided_there)
    if (decided >= g.decided) all = all - fault::RankSet{r};
  return all;
}

void Recovery::say_decided(const Group& g, Rank to, bool answer) {
  send(g, to, Kind::decided, BytesOut().u64(g.decided).u8(answer).bytes());
}

void Recovery::hear_decided(Group& g, Rank from, BytesIn& in) {
  const std::uint64_t decided = in.u64();
  const bool answer = in.u8() != 0;
  if (!in.ok()) return;
  g.decided_there[from] = std::max(g.decided_there[from], decided);
  if (answer) say_decided(g, from, false);
}

void Recovery::await_decided() {
  std::unique_lock lock(mutex_);
  if (all_have_left_ || !thread_.joinable()) return;
  for (const auto& [id, g] : groups_)
    for (const Rank r : may_ask(g)) say_decided(g, r, true);
  const std::int64_t until_ns = time_limit(detection_ms_ > 0 ? std::min(detection_ms_, kLeaveMsMax) : kLeaveMsMax);
  std::int64_t pause_ns = kQuestionNs, ask_at_ns = now_ns() + pause_ns;
  const auto all_decided = [](const auto& x) { return undecided(x.second).empty(); };
  while (ended_.ok() && now_ns() < until_ns && !std::ranges::all_of(groups_, all_decided)) {
    changed_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(ask_at_ns - now_ns(), 0)));
    if (now_ns() < ask_at_ns) continue;
    for (const auto& [id, g] : groups_)
      for (const Rank r : undecided(g)) say_decided(g, r, true);
    pause_ns = std::min(2 * pause_ns, kQuestionNsMax);
    ask_at_ns = now_ns() + pause_ns;
  }
}

void Recovery::all_have_left() {
  std::lock_guard lock(mutex_);
  all_have_left_ = true;
}

}  // namespace gccl
