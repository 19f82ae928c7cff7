// How ranks hear that one of them has given up a call that they make together: at its time limit, or as GCCL_Abort was
// called there. What it had contributed still stands with them, and it answers nothing more, so they would wait for it
// without end.
//
//   rank 0 gives up        ---- broken: code, text --->   rank 1 waits: its call ends with that, and it reports it too
//                          <--- broken_known ----------
//   rank 2 comes later     ---- a message of its call ->  rank 1
//                          <--- broken: code, text -----
//
// Every rank reports it to all others, as in revoking: it spreads also where the first ends while it does. A rank that
// is out (fault/membership.hpp) reports nothing: those that have gone on without it do not mind.
#include <algorithm>
#include <limits>

#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/recovery/recovery.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kReportAgainNs = 20 * kNsPerMs, kReportAgainNsMax = 1000 * kNsPerMs;
constexpr std::size_t kTextMax = 2000;

}  // namespace

bool Recovery::reports(const Group& g) const {
  return !g.broken.ok() && g.membership->out() == fault::Membership::Out::no;
}

void Recovery::give_up(Group& g, const Status& why, Rank heard_from) {
  g.broken = why.copy_or_code();
  g.uninformed = g.membership->members() - fault::RankSet{g.members.rank} - fault::RankSet{heard_from};
  g.report_pause_ns = kReportAgainNs;
  g.report_at_ns = now_ns();
  report(g);
  wake();
}

void Recovery::end_calls(const Members& members, const Status& why) {
  if (!usable_.ok()) return;
  std::lock_guard lock(mutex_);
  Group& g = group_of(members);
  if (ended_.ok() && g.broken.ok()) give_up(g, why, members.rank);
}

bool Recovery::ended(const Members& members) {
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(members.id);
  return found != groups_.end() && !over(found->second).ok();
}

// Less and less often: one that makes no call on the communicator does not answer.
void Recovery::report(Group& g) {
  const std::int64_t now = now_ns();
  g.uninformed = g.uninformed - g.membership->failures().failed;
  if (g.uninformed.empty()) g.report_at_ns = std::numeric_limits<std::int64_t>::max();
  if (now < g.report_at_ns) return;
  for (const Rank r : g.uninformed) say_broken(g, r);
  g.report_at_ns = now + g.report_pause_ns;
  g.report_pause_ns = std::min(2 * g.report_pause_ns, kReportAgainNsMax);
}

void Recovery::say_broken(const Group& g, Rank to) {
  const std::string text = g.broken.text().substr(0, kTextMax);
  BytesOut out;
  out.u32(std::uint32_t(g.broken.code())).raw(text);
  send(g, to, Kind::broken, out.bytes());
}

// What a rank that has ended since has reported counts as well.
void Recovery::hear_broken(Group& g, Rank from, BytesIn& in) {
  const auto& m = *g.membership;
  const int code = int(in.u32());
  if (!in.ok() || !is_error(code) || from == g.members.rank || !m.members().contains(from)) return;
  if (m.failures().failed.contains(from) && !m.failures().gone.contains(from)) return;
  const auto text = in.rest();
  if (g.broken.ok())
    give_up(g, Status::error(std::string(reinterpret_cast<const char*>(text.data()), text.size()), code), from);
  g.uninformed = g.uninformed - fault::RankSet{from};
  send(g, from, Kind::broken_known, {});
}

}  // namespace gccl
