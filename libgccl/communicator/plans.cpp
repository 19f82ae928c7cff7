#include "libgccl/communicator/plans.hpp"

#include <algorithm>
#include <cassert>

namespace gccl {

// What follows from the layout and the slow pairs.
void Plans::set() {
  layout_ = around(layout_, slow_);
  detours_ = Detours(layout_, slow_);
  setting_.use(layout_, rank_);
  kept_ = {};
  ++epoch_;
}

Plan Plans::planned(const Call& call, std::uint32_t element_bytes) {
  setting_.costs.element_bytes = element_bytes;
  return plan(call, setting_.first, CostModels(&setting_.costs, 1), setting_.tuning, authorities_, algorithms(),
              nullptr, &detours_);
}

Plan Plans::estimated(Collective kind, Count count, std::uint32_t element_bytes) {
  Call call{.kind = kind, .count = count};
  if (has_counts(kind)) {
    // All blocks are as long as the mean one.
    call.counts = [](const void* table, Rank, Rank) { return *static_cast<const Count*>(table); };
    call.table = &count;
    if (kind == Collective::alltoallv) {  // as ranks make it: planned without a length, as each knows its own alone
      call.places = [](const void* table, Rank, Rank peer, bool) { return peer * *static_cast<const Count*>(table); };
      call.count = 0;
    }
  }
  Plan p = planned(call, element_bytes);
  call.count = count;
  const bool empty = has_counts(kind) && count == 0;  // no block is sent, which their forms do not look at
  p.predicted_ns = empty ? setting_.costs.protocol.operation_ns
                         : predicted(*p.algorithm, call, setting_.first, setting_.costs, p.slicing, setting_.tuning) +
                               detours_.added_ns(*p.algorithm, call, p.slicing.lanes, element_bytes);
  return p;
}

double Plans::link_rate() const {
  const auto ns_per_byte = [this](const CostModel& m) {
    return setting_.first.nodes > 1 ? std::max(m.net.beta_ns_per_byte, m.net_all.beta_ns_per_byte)
                                    : m.node.beta_ns_per_byte;
  };
  Setting compiled{
      .in_memory = setting_.in_memory, .oversubscribed = setting_.oversubscribed, .cost_model = setting_.cost_model};
  compiled.use(layout_, rank_);
  const double here = ns_per_byte(setting_.costs);
  return here > 0 && here != ns_per_byte(compiled.costs) ? 1e9 / here : 0;
}

std::shared_ptr<PreparedPlan> Plans::prepare(const Work& work) {
  const Call& call = work.call;
  const std::uint32_t element_bytes = work.elements.bytes;
  auto plan = std::make_shared<PreparedPlan>();
  plan->epoch = epoch_;
  if (work.algorithm) {
    plan->algorithm = work.algorithm;
    plan->slicing = work.slicing;
    plan->slicing.lanes = std::min({work.slicing.lanes, work.slicing.shares, kLanesMax});
    plan->by = Authority::call;
  } else {
    static_cast<Plan&>(*plan) = planned(call, element_bytes);
  }
  const Slicing& s = plan->slicing;
  assert(plan->algorithm && plan->algorithm->kind == call.kind && s.lanes >= 1 && s.lanes <= s.shares);
  if (s.shares == 1 && fast_) {
    const Share whole{};
    plan->scratch.push_back(plan->algorithm->scratch_count(call, view(), whole));
    plan->program = fast_->compile(plan->algorithm->make(call, view(), whole), element_bytes);
  } else {
    for (Count lane = 0; lane < s.lanes; ++lane)
      plan->scratch.push_back(plan->algorithm->scratch_count(call, view(), s.shares, lane, s.lanes));
  }
  return plan;
}

std::shared_ptr<PreparedPlan> Plans::of(const Work& work, bool* made) {
  *made = true;
  if (work.lengths) return prepare(work);  // which may differ in every call
  const Shape shape{.kind = work.call.kind,
                    .in_place = work.call.in_place,
                    .root = work.call.root,
                    .element_bytes = work.elements.bytes,
                    .count = work.call.count,
                    .algorithm = work.algorithm,
                    .slicing = work.slicing};
  bool found = false;
  std::shared_ptr<PreparedPlan>& plan = kept_.place(shape, &found);
  if (found) {
    *made = false;
  } else {
    plan = prepare(work);
  }
  return plan;
}

}  // namespace gccl
