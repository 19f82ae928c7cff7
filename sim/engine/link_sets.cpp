#include "sim/engine/link_sets.hpp"

#include <algorithm>

namespace gccl::sim {

const LinkSet& LinkSets::of(const std::vector<Card>& members, Rank root, bool reduces) {
  const auto [at, fresh] = sets_.try_emplace({members, {root, reduces}});
  if (fresh) at->second = make(members, root, reduces);
  return at->second;
}

// Routes meet at the root, so their stages are counted from its end.
LinkSet LinkSets::make(const std::vector<Card>& members, Rank root, bool reduces) const {
  std::vector<LinkSet::Leg> legs;  // by stages from the root
  std::vector<LinkId> route, nearest;
  const auto add = [&](LinkId l, std::size_t stage) {
    const bool known = std::any_of(legs.begin(), legs.end(), [&](const auto& leg) { return leg.link == l; });
    if (!known) legs.push_back({l, std::uint32_t(stage), 0});
  };
  const auto take = [&](Card from, Card to) {
    cluster_.route(from, to, route);
    if (reduces) std::reverse(route.begin(), route.end());
  };
  for (Rank i = 0; i < members.size(); ++i) {
    if (i == root) continue;
    reduces ? take(members[i], members[root]) : take(members[root], members[i]);
    for (std::size_t k = 0; k < route.size(); ++k) add(route[k], k);
    // The way of the others' data: half of it joins the root and the nearest switch.
    reduces ? take(members[root], members[i]) : take(members[i], members[root]);
    if (nearest.empty() || route.size() < nearest.size()) nearest = route;
  }
  for (std::size_t k = nearest.size() / 2; k < nearest.size(); ++k) add(nearest[k], k);
  std::stable_sort(legs.begin(), legs.end(), [](const auto& a, const auto& b) { return a.stage < b.stage; });

  LinkSet set;
  set.efficiency = cluster_.in_switch(members);
  set.narrowest = legs.front().link;
  const auto& links = cluster_.links();
  for (const LinkSet::Leg& leg : legs)
    if (links[leg.link].bandwidth_GBps < links[set.narrowest].bandwidth_GBps) set.narrowest = leg.link;
  if (reduces) {
    const std::uint32_t last = legs.back().stage;
    for (LinkSet::Leg& leg : legs) leg.stage = last - leg.stage;
    std::stable_sort(legs.begin(), legs.end(), [](const auto& a, const auto& b) { return a.stage < b.stage; });
  }
  // What leaves a stage waits for its slowest link.
  Nanos before = 0, slowest = 0;
  for (std::size_t i = 0; i < legs.size(); ++i) {
    if (i > 0 && legs[i].stage != legs[i - 1].stage) before += slowest, slowest = 0;
    legs[i].before = before;
    slowest = std::max(slowest, links[legs[i].link].latency_ns);
  }
  set.latency = before + slowest;
  set.legs = std::move(legs);
  return set;
}

}  // namespace gccl::sim
