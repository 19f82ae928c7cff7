#include "sim/flow/fair_flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gccl::sim {
namespace {

// Rates that differ by less are equal.
constexpr double kEqual = 1e-9;
// Flows that end within so many nanoseconds end together. (SimGrid's precision as set in simgrid/platform.cpp.)
constexpr double kTogether = 0.1;

}  // namespace

FairFlows::FairFlows(const std::vector<Link>& links) {
  links_.reserve(links.size());
  for (const Link& l : links) links_.push_back({.capacity = l.bandwidth_GBps, .flows = {}});
}

void FairFlows::start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns, Nanos now) {
  clock_ = std::max(clock_, double(now));
  if (id >= flows_.size()) flows_.resize(id + 1);
  Flow& f = flows_[id];
  f.route.clear();
  f.left = double(bytes);
  f.rate = 0;
  f.bound = least_ns > 0 ? double(bytes) / double(least_ns) : std::numeric_limits<double>::infinity();
  f.since = clock_;
  f.instant = now;
  f.bottleneck = kOwn;
  ++active_;
  bool alone = true;
  double rate = f.bound;
  for (const LinkId l : route) {
    SharedLink& link = links_[l];
    f.route.push_back({l, std::uint32_t(link.flows.size())});
    link.flows.push_back({id, std::uint32_t(f.route.size() - 1)});
    alone = alone && link.flows.size() == 1;
    if (link.capacity < rate) rate = link.capacity, f.bottleneck = l;
  }
  if (alone)
    schedule(id, rate);
  else
    change(id);
}

Nanos FairFlows::advance(Nanos limit, std::vector<EventId>& ended) {
  const std::size_t before = ended.size();
  for (;;) {
    if (!changing_.empty()) set_rates();
    if (ended.size() > before && (ends_.empty() || ends_.next() > nearest_ns(clock_))) return nearest_ns(clock_);
    if (ends_.empty() && limit < 0) throw std::logic_error("no flow in flight ends");
    if (ends_.empty() || (limit >= 0 && ends_.next() > limit)) {
      clock_ = std::max(clock_, double(limit));
      return limit;
    }
    take_earliest(ended);
  }
}

// Takes the flows that end first in the next instant, and those that end with them.
void FairFlows::take_earliest(std::vector<EventId>& ended) {
  const Nanos instant = ends_.next();
  ends_.take(batch_);
  std::erase_if(batch_, [&](EventId id) {
    Flow& f = flows_[id];
    if (f.noted != instant) return true;
    f.noted = -1;
    if (f.instant > instant) note(id);  // it has become slower since
    return f.instant != instant;
  });
  double first = std::numeric_limits<double>::infinity();
  for (const EventId id : batch_) first = std::min(first, flows_[id].ends);
  if (!batch_.empty()) clock_ = std::max(clock_, first);
  for (const EventId id : batch_) {
    if (flows_[id].ends > first + kTogether) {
      note(id);
      continue;
    }
    finish(id);
    ended.push_back(id);
  }
  change_freed();
}

// Only flows that a full link held back can go faster now. Once for all that have left it: thousands may at once.
void FairFlows::change_freed() {
  for (const LinkId l : freed_) {
    links_[l].freed = false;
    for (const Place& p : links_[l].flows)
      if (flows_[p.flow].bottleneck == l) change(p.flow);
  }
  freed_.clear();
}

void FairFlows::set_capacity(LinkId link, double GBps, Nanos now) {
  clock_ = std::max(clock_, double(now));
  links_[link].capacity = GBps;
  for (const Place& p : links_[link].flows) change(p.flow);
}

bool FairFlows::takes(EventId id, std::span<const LinkId> route) const {
  return std::equal(route.begin(), route.end(), flows_[id].route.begin(), flows_[id].route.end(),
                    [](LinkId l, const Hop& hop) { return l == hop.link; });
}

void FairFlows::move(EventId id, std::span<const LinkId> route, Nanos now) {
  clock_ = std::max(clock_, double(now));
  leave(id);
  flows_[id].route.clear();
  flows_[id].bottleneck = kOwn;
  for (const LinkId l : route) {
    links_[l].flows.push_back({id, std::uint32_t(flows_[id].route.size())});
    flows_[id].route.push_back({l, std::uint32_t(links_[l].flows.size() - 1)});
  }
  change(id);
  change_freed();
}

void FairFlows::finish(EventId id) {
  flows_[id].instant = -1;
  --active_;
  leave(id);
}

// Its links are without it.
void FairFlows::leave(EventId id) {
  for (const Hop& hop : flows_[id].route) {
    auto& flows = links_[hop.link].flows;
    const Place last = flows.back();
    flows[hop.place] = last;
    flows_[last.flow].route[last.hop].place = hop.place;
    flows.pop_back();
    if (!std::exchange(links_[hop.link].freed, true)) freed_.push_back(hop.link);
  }
}

void FairFlows::change(EventId id) {
  Flow& f = flows_[id];
  if (f.changing) return;
  f.changing = true;
  changing_.push_back(id);
}

void FairFlows::schedule(EventId id, double rate) {
  Flow& f = flows_[id];
  f.left = std::max(0.0, f.left - f.rate * (clock_ - f.since));
  f.since = clock_;
  f.rate = rate;
  f.ends = clock_ + f.left / rate;
  f.instant = nearest_ns(f.ends);
  if (f.noted < 0 || f.noted > f.instant) note(id);
}

void FairFlows::note(EventId id) {
  Flow& f = flows_[id];
  f.noted = f.instant;
  ends_.add(f.instant, id);
}

void FairFlows::set_rates() {
  // A flow may have ended since it was to be given a new rate.
  std::erase_if(changing_, [&](EventId id) {
    Flow& f = flows_[id];
    if (f.instant >= 0) return false;
    f.changing = false;
    return true;
  });
  before_.clear();
  do {
    for (std::size_t i = before_.size(); i < changing_.size(); ++i) {
      const Flow& f = flows_[changing_[i]];
      before_.push_back(f.rate);
      for (const Hop& hop : f.route)
        if (!links_[hop.link].touched) {
          links_[hop.link].touched = true;
          touched_.push_back(hop.link);
        }
    }
    fill();
  } while (add_unfair());
  for (const LinkId l : touched_) links_[l].touched = false;
  touched_.clear();
  for (std::size_t i = 0; i < changing_.size(); ++i) {
    Flow& f = flows_[changing_[i]];
    f.changing = false;
    const double rate = std::exchange(f.rate, before_[i]);
    if (std::abs(rate - before_[i]) > kEqual * rate) schedule(changing_[i], rate);
  }
  changing_.clear();
}

// Progressive filling: the link that gives its flows the least is full first, and they have their rate.
void FairFlows::fill() {
  shares_.clear();
  for (const EventId id : changing_) flows_[id].fixed = false;
  for (const LinkId l : touched_) {
    SharedLink& link = links_[l];
    link.free = link.capacity;
    link.waiting = 0;
    for (const Place& p : link.flows) {
      const Flow& f = flows_[p.flow];
      if (f.changing)
        ++link.waiting;
      else
        link.free -= f.rate;
    }
    link.free = std::max(link.free, 0.0);
    if (link.waiting > 0) shares_.push_back({link.free / link.waiting, l, 0});
  }
  for (const EventId id : changing_)
    if (std::isfinite(flows_[id].bound)) shares_.push_back({flows_[id].bound, kOwn, id});
  const auto later = [](const Share& a, const Share& b) { return a.rate > b.rate; };
  std::make_heap(shares_.begin(), shares_.end(), later);
  while (!shares_.empty()) {
    std::pop_heap(shares_.begin(), shares_.end(), later);
    const Share s = shares_.back();
    shares_.pop_back();
    if (s.link == kOwn) {
      if (!flows_[s.flow].fixed) fix(s.flow, s.rate, kOwn);
      continue;
    }
    SharedLink& link = links_[s.link];
    if (link.waiting == 0) continue;
    const double share = std::max(link.free, 0.0) / link.waiting;
    if (share > s.rate * (1 + kEqual)) {  // flows that go slower elsewhere have left it more since
      shares_.push_back({share, s.link, 0});
      std::push_heap(shares_.begin(), shares_.end(), later);
      continue;
    }
    for (const Place& p : link.flows)
      if (flows_[p.flow].changing && !flows_[p.flow].fixed) fix(p.flow, share, s.link);
  }
}

void FairFlows::fix(EventId id, double rate, std::uint32_t bottleneck) {
  Flow& f = flows_[id];
  f.fixed = true;
  f.rate = rate;
  f.bottleneck = bottleneck;
  for (const Hop& hop : f.route) {
    links_[hop.link].free -= rate;
    --links_[hop.link].waiting;
  }
}

// Adds the flows that keep others from a fair rate, or have lost their bottleneck, to those that change. False where
// there are none.
bool FairFlows::add_unfair() {
  const std::size_t before = changing_.size();
  for (const LinkId l : touched_) {
    const SharedLink& link = links_[l];
    double used = 0, fastest = 0, held = std::numeric_limits<double>::infinity();
    bool all_change = true;
    for (const Place& p : link.flows) {
      const Flow& f = flows_[p.flow];
      used += f.rate;
      fastest = std::max(fastest, f.rate);
      if (f.changing && f.bottleneck == l) held = std::min(held, f.rate);
      all_change = all_change && f.changing;
    }
    if (all_change) continue;
    const bool full = used >= link.capacity * (1 - kEqual);
    for (const Place& p : link.flows) {
      const Flow& f = flows_[p.flow];
      if (f.changing) continue;
      if (f.rate > held * (1 + kEqual) || (f.bottleneck == l && (!full || f.rate < fastest * (1 - kEqual))))
        change(p.flow);
    }
  }
  return changing_.size() > before;
}

}  // namespace gccl::sim
