// One call, as planned, on the first cards of a shipped cluster.
#pragma once

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/engine/workload.hpp"

namespace gccl {

struct PlannedCall {
  std::shared_ptr<const Cluster> cluster;  // the workload refers to it
  Plan plan;
  sim::Workload workload;
};

// `count` floats, in the slicing that is stated, or else as the planner would have the algorithm.
inline PlannedCall planned_call(const std::string& name, Rank ranks, Collective kind, std::string_view algorithm,
                                Count count, const std::optional<Slicing>& slicing = {}) {
  PlannedCall p{.cluster = load_cluster(GCCL_SOURCE_DIR "/topologies/" + name + ".json"), .plan = {}, .workload = {}};
  std::vector<Card> cards(ranks);
  std::iota(cards.begin(), cards.end(), 0);
  const auto layout = std::make_shared<Layout>(layout_of(*p.cluster, cards));
  const Algorithm& a = *find_algorithm(kind, algorithm);
  const Call call{.kind = kind, .count = count};
  const PlannedBy by = planned_by(*p.cluster, cards, 4);
  p.plan = plan_of(a, call, layout->view(0), by.models, by.tuning, nullptr, slicing);
  p.workload.cluster = p.cluster.get();
  p.workload.cards = cards;
  const auto& protocols = p.cluster->protocols();
  p.workload.operations.push_back({.algorithm = &a,
                                   .call = call,
                                   .layout = layout,
                                   .members = {},
                                   .shares = p.plan.slicing.shares,
                                   .lanes = p.plan.slicing.lanes,
                                   .window = p.plan.slicing.window,
                                   .protocol = protocols.empty() ? nullptr : &protocols[p.plan.protocol]});
  p.workload.streams = {{{0}}};
  return p;
}

}  // namespace gccl
