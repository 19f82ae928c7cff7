#include "libgccl/communicator/record/recorder.hpp"

#include <algorithm>

namespace gccl {

void Recorder::number(Work& work) {
  Descriptor& what = work.what;
  what.sequence = team_.record->history.last() + 1;
  if (user_defined(what.dtype)) what.element_bytes = work.elements.bytes;
  team_.record->thread.store(Watch::this_thread(), std::memory_order_relaxed);
  team_.record->history.add(what.sequence, what.signature(), History::call_of(what));
  team_.flight.began(what.sequence, nullptr);
  if (work.lengths) team_.flight.lengths(what.sequence, what.bytes / std::max<std::size_t>(1, work.elements.bytes));
  if (work.call.kind == Collective::alltoallv)
    team_.world->watch->exchanges(*team_.record, what.sequence, work.lengths->send_counts, work.lengths->recv_counts);
}

void Recorder::planned(const Work& work, const PreparedPlan& plan, bool made) {
  metrics_.planned(work.what, plan, made);
  if (made) announce(work, plan);
}

void Recorder::moved(const Operation& op, bool ok) {
  const Descriptor& what = op.work.what;
  if (op.replaying && ok) metrics_.moved(op.plan->program->traffic);
  if (op.flow) metrics_.moved(op.flow->traffic());
  if (what.point_to_point() && what.root != team_.rank() && ok) metrics_.moved(what);
  if (!op.internal() && !what.point_to_point() && ok) team_.flight.ended(what.sequence);
}

void Recorder::ended(const Operation& op, bool ok) {
  moved(op, ok);
  if (!op.internal()) return metrics_.ended(op.work.what, op.timed_from_ns, !ok);
  if (op.comparison && op.comparison->ends_call()) metrics_.ended(*op.checked, op.timed_from_ns, !ok);
}

void Recorder::links_changed(const std::vector<fault::LinkHealth::Link>& changed, const fault::LinkHealth& health) {
  if (changed.empty()) return;
  for (const fault::LinkHealth::Link& l : changed) metrics_.link_changed(l.slow);
  const fault::LinkHealth::Link* slowest = nullptr;
  for (const fault::LinkHealth::Link& l : health.links())
    if (l.slow && (!slowest || l.rate < slowest->rate)) slowest = &l;
  metrics_.slowest_link(slowest ? int(slowest->from) : -1, slowest ? int(slowest->to) : -1, slowest ? slowest->rate : 0,
                        slowest ? slowest->expected : 0);
}

}  // namespace gccl
