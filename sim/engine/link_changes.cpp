#include "sim/engine/link_changes.hpp"

#include <algorithm>
#include <set>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/cluster/composed.hpp"

namespace gccl::sim {
namespace {

constexpr Nanos kForGood = kTimeMax;

// What a fault does to its links from one time to another.
struct Span {
  Nanos from, until;
  std::vector<LinkId> links;
  double share = 1;  // of the bandwidth
  Nanos extra = 0;
  bool down = false;
  Nanos avoided_from = kForGood;
};

std::vector<LinkId> links_of(const Fault& f, const Workload& w, const LinkNames& names) {
  switch (f.kind) {
    case FaultKind::nic_down: return names.cable(f.link);
    case FaultKind::switch_loss: return names.at(f.link);
    case FaultKind::pause: {
      std::vector<LinkId> all, route;
      for (const Rank r : f.ranks) {
        const Card card = w.cards[r], other = card == 0 ? 1 : 0;
        if (w.cluster->cards() < 2) continue;
        w.cluster->route(card, other, route);
        const std::uint32_t place = names.ends()[route.front()].from;
        for (LinkId l = 0; l < names.ends().size(); ++l)
          if (names.ends()[l].from == place || names.ends()[l].to == place) all.push_back(l);
      }
      return all;
    }
    case FaultKind::link_down:
    case FaultKind::link_degraded: {
      if (const auto link = names.link(f.link)) return {*link};
      return names.cable(f.link);
    }
    default: return {};
  }
}

std::vector<Span> spans_of(const Workload& w) {
  const LinkNames names(*w.cluster);
  std::vector<Span> all;
  for (const Fault& f : w.faults->faults) {
    Span s{.from = f.at, .until = f.lasts > 0 ? f.at + f.lasts : kForGood, .links = links_of(f, w, names)};
    if (s.links.empty()) continue;
    if (f.kind == FaultKind::link_degraded) {
      s.share = f.amount;
      s.extra = f.latency;
    } else {
      s.down = true;
      const Nanos avoided = f.at + w.faults->recovery.reroute_after;
      if (f.kind != FaultKind::pause && avoided < s.until) s.avoided_from = avoided;
    }
    all.push_back(std::move(s));
  }
  return all;
}

}  // namespace

LinkChanges::LinkChanges(const Workload& w) {
  const std::vector<Span> spans = spans_of(w);
  std::set<Nanos> times;
  for (const Span& s : spans) {
    first_ = first_ < 0 ? s.from : std::min(first_, s.from);
    times.insert(s.from);
    last_ = std::max(last_, s.from);
    for (const Nanos t : {s.until, s.avoided_from})
      if (t < kForGood) times.insert(t), last_ = std::max(last_, t);
  }
  std::map<LinkId, std::pair<double, Nanos>> now;  // what differs from the links' own
  std::vector<LinkId> avoided;
  for (const Nanos t : times) {
    Instant instant{.at = t, .changes = {}, .dead = {}, .degraded = {}};
    std::map<LinkId, std::pair<double, Nanos>> then;
    std::set<LinkId> dead;
    for (const Span& s : spans) {
      if (t < s.from || t >= s.until) continue;
      for (const LinkId l : s.links) {
        auto& [share, extra] = then.try_emplace(l, 1.0, 0).first->second;
        share = s.down || share == 0 ? 0 : std::max(kBandwidthLeast, share * s.share);
        extra += s.extra;
        if (t >= s.avoided_from) dead.insert(l);
        if (s.down || s.share == 1) continue;
        double& left = instant.degraded.try_emplace(l, 1.0).first->second;
        left = std::max(kBandwidthLeast, left * s.share);
      }
    }
    const auto set = [&](LinkId l, std::pair<double, Nanos> to) {
      instant.changes.push_back({l, w.cluster->links()[l].bandwidth_GBps * to.first, to.second});
    };
    for (const auto& [l, to] : then)
      if (const auto before = now.find(l); before == now.end() || before->second != to) set(l, to);
    for (const auto& [l, to] : now)
      if (!then.contains(l)) set(l, {1.0, 0});
    now = std::move(then);
    instant.dead.assign(dead.begin(), dead.end());
    instant.reroutes = instant.dead != avoided;
    avoided = instant.dead;
    instants_.push_back(std::move(instant));
  }
}

std::map<LinkId, double> LinkChanges::mean_shares(Nanos until) const {
  std::map<LinkId, double> shares;
  for (std::size_t i = 0; i < instants_.size() && instants_[i].at < until; ++i) {
    const Nanos end = i + 1 < instants_.size() ? std::min(until, instants_[i + 1].at) : until;
    for (const auto& [l, share] : instants_[i].degraded)
      shares.try_emplace(l, 1.0).first->second -= (1 - share) * double(end - instants_[i].at) / double(until);
  }
  return shares;
}

void Detours::avoid(const std::vector<LinkId>& dead) {
  if (!names_) {
    names_ = std::make_unique<LinkNames>(cluster_);
    out_.resize(names_->places());
    // Without a fabric the cables of NICs are plugged in nowhere, though their names have one place for that.
    const auto* const composed = dynamic_cast<const ComposedCluster*>(&cluster_);
    const bool plugged = !composed || composed->parts().fabric;
    for (LinkId l = 0; l < names_->ends().size(); ++l)
      if (plugged || cluster_.links()[l].tier != Tier::leaf) out_[names_->ends()[l].from].push_back(l);
  }
  dead_.assign(cluster_.links().size(), false);
  for (const LinkId l : dead) dead_[l] = true;
  any_ = !dead.empty();
  known_.clear();
}

void Detours::around(Card from, Card to, std::vector<LinkId>* route) {
  if (!any_ || std::none_of(route->begin(), route->end(), [&](LinkId l) { return dead_[l]; })) return;
  const auto [at, fresh] = known_.try_emplace({from, to});
  if (!fresh) {
    if (!at->second.empty()) *route = at->second;
    return;
  }
  const std::uint32_t begin = names_->ends()[route->front()].from, end = names_->ends()[route->back()].to;
  // Breadth first from the begin of the way; of links that lead on equally well one by the pair. NICs pass nothing on
  // inside their node: there are two of each, one for what leaves the node, which comes second, and one for what
  // enters.
  struct Step {
    LinkId link;
    std::uint32_t from;
  };
  const std::uint32_t leaving = std::uint32_t(names_->places());
  std::vector<Step> came(2 * names_->places());
  std::vector<std::uint32_t> front{begin}, next;
  std::vector<bool> seen(2 * names_->places(), false);
  seen[begin] = true;
  const auto in_another_node = [&](std::uint32_t place) {
    const std::optional<Rank> node = names_->node_of(place);
    return node && *node != cluster_.node_of(from) && *node != cluster_.node_of(to);
  };
  const auto inside = [&](LinkId l) { return cluster_.links()[l].tier != Tier::leaf; };
  const std::uint64_t turn = splitmix::hash(std::uint64_t(from) << 32 | to);
  while (!front.empty() && !seen[end]) {
    next.clear();
    for (const std::uint32_t place : front) {
      const bool leaves = place >= leaving;
      const auto& links = out_[leaves ? place - leaving : place];
      for (std::size_t i = 0; i < links.size(); ++i) {
        const LinkId l = links[(i + turn) % links.size()];
        std::uint32_t there = names_->ends()[l].to;
        if (dead_[l] || (leaves && inside(l)) || in_another_node(there)) continue;
        if (names_->is_nic(there) && inside(l)) there += leaving;
        if (seen[there]) continue;
        seen[there] = true;
        came[there] = {l, place};
        next.push_back(there);
      }
    }
    front.swap(next);
  }
  if (!seen[end]) return;
  std::vector<LinkId> way;
  for (std::uint32_t place = end; place != begin; place = came[place].from) way.push_back(came[place].link);
  std::reverse(way.begin(), way.end());
  ++made_;
  *route = at->second = std::move(way);
}

}  // namespace gccl::sim
