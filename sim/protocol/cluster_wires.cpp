#include "sim/protocol/cluster_wires.hpp"

#include <algorithm>

namespace gccl::sim {

ClusterWires::ClusterWires(const Cluster& cluster) : cluster_(cluster), names_(cluster) {
  for (const Link& l : cluster.links())
    links_.push_back({.bandwidth = l.bandwidth_GBps, .latency = l.latency_ns, .degraded = {}});
}

const std::vector<LinkId>& ClusterWires::route(Card from, Card to) {
  const auto [at, fresh] = routes_.try_emplace({from, to});
  if (fresh) cluster_.route(from, to, at->second);
  return at->second;
}

Nanos ClusterWires::State::carried(Nanos start, double bytes) const {
  for (;;) {
    double left = 1;
    Nanos until = kForGood;  // so much is left
    for (const Degraded& d : degraded)
      if (d.until > start) left *= d.left, until = std::min(until, d.until);
    const double rate = bandwidth * std::max(left, kBandwidthLeast), takes = bytes / rate + 0.5;
    if (until == kForGood || takes < double(until - start)) return start + Nanos(takes);
    bytes -= double(until - start) * rate;
    start = until;
  }
}

Nanos ClusterWires::passage(Card from, Card to, std::size_t bytes, Nanos now) {
  Nanos head = now, tail = now;
  for (const LinkId l : route(from, to)) {
    State& s = links_[l];
    const Nanos start = std::max(head, s.free);
    s.free = s.carried(start, double(bytes));
    head = start + s.latency + s.extra;
    tail = std::max(tail, s.free) + s.latency + s.extra;
  }
  return std::max<Nanos>(1, tail - now);
}

std::vector<Rank> ClusterWires::cut_off(std::span<const Card> cards) {
  std::vector<Rank> all;
  for (Rank a = 0; a < cards.size(); ++a) {
    const auto cut = [&](Card b) { return b != cards[a] && (down(cards[a], b) || down(b, cards[a])); };
    if (std::ranges::any_of(cards, cut)) all.push_back(a);
  }
  return all;
}

bool ClusterWires::down(Card from, Card to) {
  const auto& links = route(from, to);
  return std::any_of(links.begin(), links.end(), [&](LinkId l) { return links_[l].down > 0; });
}

std::vector<LinkId> ClusterWires::links_of(const Fault& f) const {
  if (f.kind == FaultKind::nic_down) return names_.cable(f.link);
  if (f.kind == FaultKind::switch_loss) return names_.at(f.link);
  if (f.link.empty()) return {};
  const auto link = names_.link(f.link);
  return link ? std::vector<LinkId>{*link} : names_.cable(f.link);
}

void ClusterWires::apply(const Fault& f, bool begins, Nanos until) {
  for (const LinkId l : links_of(f)) {
    State& s = links_[l];
    if (f.kind == FaultKind::link_degraded) {
      if (begins)
        s.degraded.push_back({.by = &f, .left = f.amount, .extra = f.latency, .until = until});
      else
        std::erase_if(s.degraded, [&](const Degraded& d) { return d.by == &f; });
      s.extra = 0;
      for (const Degraded& d : s.degraded) s.extra += d.extra;
    } else if (begins) {
      ++s.down;
    } else if (s.down > 0) {
      --s.down;
    }
  }
}

}  // namespace gccl::sim
