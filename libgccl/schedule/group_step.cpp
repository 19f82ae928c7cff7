#include "libgccl/schedule/group_step.hpp"

namespace gccl {
namespace {

// At distance d a member sends to the one d after it and receives from the one d before it, so no two messages of a
// distance are for one member.
Schedule plain_recv_reduce_all(Group g, Step s) {
  const bool root = g.rank < s.roots;
  Region have = root ? part_of(s, g.rank) : Region{};
  for (Rank d = 1; d < g.size; ++d) {
    const Rank to = g.ahead(d), from = g.behind(d);
    if (to < s.roots) co_yield send(g[to], part_of(s, to));
    if (!root) continue;
    co_yield recv_reduce(g[from], have, s.to);
    have = s.to;
  }
  if (root && g.size == 1) co_yield copy(have, s.to);
}

Schedule plain_send_all(Group g, Step s) {
  const bool root = g.rank < s.roots;
  for (Rank d = 1; d < g.size; ++d) {
    const Rank to = g.ahead(d), from = g.behind(d);
    if (root) co_yield send(g[to], s.from);
    if (from < s.roots) co_yield recv(g[from], part_of(s, from));
  }
  if (root) co_yield copy(s.from, part_of(s, g.rank));
}

}  // namespace

Region part_of(const Step& s, Rank i) {
  const bool sends = s.op == Op::send_all;
  const Region& whole = sends ? s.to : s.from;
  if (s.divided == Divided::parts) return whole.part(i, s.roots);
  const Count own = sends ? s.from.count : s.to.count;
  const Count stride = s.roots > 1 ? (whole.count - own) / (s.roots - 1) : 0;
  return whole.sub(i * stride, own);
}

Schedule to_group(View v, Step s) {
  const Group& g = group_of(v, s.scope);
  if (g.size > 1 && in_switch(v, s.scope)) {
    co_yield s;
  } else if (s.op == Op::send_all) {
    co_yield plain_send_all(g, s);
  } else {
    co_yield plain_recv_reduce_all(g, s);
  }
}

}  // namespace gccl
