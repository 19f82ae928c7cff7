// How ranks hear that one of them has given up a call that they make together: at its time limit, or as GCCL_Abort was
// called there. What it had contributed still stands with them, and it answers nothing more, so they would wait for it
// without end.
//
//   rank 0 gives up        ---- broken: code, text --->   rank 1 waits: its call ends with that, and it tells all, too
//                          <--- broken_known ----------
//   rank 2 comes later     ---- a message of its call ->  rank 1
//                          <--- broken: code, text -----
//
// Every rank tells all others, as in revoking: it spreads also where the first ends while it does. A rank that is out
// (fault/membership.hpp) tells nobody: those that have gone on without it do not mind.
#include <algorithm>
#include <limits>

#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/recovery.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kTellAgainNs = 20 * kNsPerMs, kTellAgainNsMax = 1000 * kNsPerMs;
constexpr std::size_t kTextMax = 2000;

}  // namespace

bool Recovery::tells(const Group& g) const {
  return !g.broken.ok() && g.membership->out() == fault::Membership::Out::no;
}

void Recovery::give_up(Group& g, const Status& why, Rank heard_from) {
  g.broken = why.copy_or_code();
  g.untold = g.membership->members() - fault::RankSet{g.members.rank} - fault::RankSet{heard_from};
  g.tell_pause_ns = kTellAgainNs;
  g.tell_at_ns = now_ns();
  tell(g);
  wake();
}

void Recovery::end_calls(const Members& members, const Status& why) {
  if (!usable_.ok()) return;
  std::lock_guard lock(mutex_);
  Group& g = group_of(members);
  if (ended_.ok() && g.broken.ok()) give_up(g, why, members.rank);
}

// Less and less often: one that makes no call on the communicator does not answer.
void Recovery::tell(Group& g) {
  const std::int64_t now = now_ns();
  g.untold = g.untold - g.membership->failures().failed;
  if (g.untold.empty()) g.tell_at_ns = std::numeric_limits<std::int64_t>::max();
  if (now < g.tell_at_ns) return;
  for (const Rank r : g.untold) say_broken(g, r);
  g.tell_at_ns = now + g.tell_pause_ns;
  g.tell_pause_ns = std::min(2 * g.tell_pause_ns, kTellAgainNsMax);
}

void Recovery::say_broken(const Group& g, Rank to) const {
  const std::string text = g.broken.text().substr(0, kTextMax);
  BytesOut out;
  out.u32(std::uint32_t(g.broken.code())).raw(text);
  send(g, to, Kind::broken, out.bytes());
}

// The last words of one that has ended since count as well.
void Recovery::hear_broken(Group& g, Rank from, BytesIn& in) {
  const auto& m = *g.membership;
  const int code = int(in.u32());
  if (!in.ok() || !is_error(code) || from == g.members.rank || !m.members().contains(from)) return;
  if (m.failures().failed.contains(from) && !m.failures().gone.contains(from)) return;
  const auto text = in.rest();
  if (g.broken.ok())
    give_up(g, Status::error(std::string(reinterpret_cast<const char*>(text.data()), text.size()), code), from);
  g.untold = g.untold - fault::RankSet{from};
  send(g, from, Kind::broken_known, {});
}

}  // namespace gccl
