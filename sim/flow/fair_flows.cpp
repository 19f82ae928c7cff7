#include "sim/flow/fair_flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "libgccl/base/prefetch.hpp"

namespace gccl::sim {
namespace {

// Rates that differ by less are equal.
constexpr double kEqual = 1e-9;
// Flows that end within so many nanoseconds end together. (SimGrid's precision as set in simgrid/platform.cpp.)
constexpr double kTogether = 0.1;

}  // namespace

FairFlows::FairFlows(const Links& links) {
  links_.reserve(links.size());
  for (const Link& l : links) links_.push_back({.capacity = l.bandwidth_GBps, .flows = {}});
}

void FairFlows::start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns, Nanos now) {
  if (active_ == 0) clock_ = std::max(clock_, double(now));  // else it is there, to the rounding of an instant
  if (id >= flows_.size()) {
    flows_.resize(id + 1);
    rates_.resize(id + 1);
  }
  Flow& f = flows_[id];
  f.left = double(bytes);
  f.bound = least_ns > 0 ? double(bytes) / double(least_ns) : std::numeric_limits<double>::infinity();
  f.since = clock_;
  f.ends = std::numeric_limits<double>::infinity();
  f.instant = kNever;
  rates_[id].value = 0;
  ++active_;
  enter(id, route);
  bool alone = true;
  double rate = f.bound;
  for (const LinkId l : route) {
    alone = alone && links_[l].flows.size() == 1;
    if (links_[l].capacity < rate) rate = links_[l].capacity, rates_[id].bottleneck = l;
  }
  if (alone) return schedule(id, rate);
  change(id);
  // Flows that these links hold back will have to go slower: so they need not be found later.
  for (const LinkId l : route) change_held(l);
}

// Puts a flow that is on no link on these.
void FairFlows::enter(EventId id, std::span<const LinkId> route) {
  Flow& f = flows_[id];
  if (route.size() > f.room) {
    f.first = std::uint32_t(hops_.size());
    f.room = std::uint32_t(route.size());
    hops_.resize(hops_.size() + f.room);
  }
  f.hops = 0;
  for (const LinkId l : route) {
    hops_[f.first + f.hops] = {l, std::uint32_t(links_[l].flows.size())};
    links_[l].flows.push_back({id, f.hops++});
  }
  rates_[id].bottleneck = kOwn;
}

Nanos FairFlows::advance(Nanos limit, std::vector<EventId>& ended) {
  if (!changing_.empty()) set_rates();
  const std::size_t before = ended.size();
  while (ended.size() == before) {
    if (ends_.empty() && limit < 0) return -1;
    if (ends_.empty() || (limit >= 0 && ends_.next() > limit)) {
      clock_ = std::max(clock_, double(limit));
      return limit;
    }
    take_earliest(ended);
  }
  // Others that end in this nanosecond end with them, faster than now by what these leave. Otherwise what these leave
  // is shared when those have begun that begin now.
  while (!ends_.empty() && ends_.next() <= nearest_ns(clock_)) {
    if (!changing_.empty()) set_rates();
    take_earliest(ended);
  }
  return nearest_ns(clock_);
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
    change_held(l);
  }
  freed_.clear();
}

void FairFlows::change_held(LinkId link) {
  for (const Place& p : links_[link].flows)
    if (rates_[p.flow].bottleneck == link) change(p.flow);
}

void FairFlows::set_capacity(LinkId link, double GBps, Nanos now) {
  clock_ = std::max(clock_, double(now));
  links_[link].capacity = GBps;
  for (const Place& p : links_[link].flows) change(p.flow);
}

double FairFlows::left(EventId id, Nanos now) const {
  const Flow& f = flows_[id];
  return std::max(0.0, f.left - rates_[id].value * (std::max(clock_, double(now)) - f.since));
}

void FairFlows::move(EventId id, std::span<const LinkId> route, Nanos now) {
  clock_ = std::max(clock_, double(now));
  leave(id);
  enter(id, route);
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
  for (const Hop& hop : route(id)) {
    auto& flows = links_[hop.link].flows;
    const Place last = flows.back();
    flows[hop.place] = last;
    hops_[flows_[last.flow].first + last.hop].place = hop.place;
    flows.pop_back();
    if (!std::exchange(links_[hop.link].freed, true)) freed_.push_back(hop.link);
  }
}

void FairFlows::change(EventId id) {
  if (std::exchange(rates_[id].changing, true)) return;
  changing_.push_back(id);
}

void FairFlows::schedule(EventId id, double rate) {
  Flow& f = flows_[id];
  f.left = std::max(0.0, f.left - rates_[id].value * (clock_ - f.since));
  f.since = clock_;
  rates_[id].value = rate;
  f.ends = rate > 0 ? clock_ + f.left / rate : std::numeric_limits<double>::infinity();
  f.instant = rate > 0 ? nearest_ns(f.ends) : kNever;
  if (f.noted < 0 || f.noted > f.instant) note(id);
}

void FairFlows::note(EventId id) {
  Flow& f = flows_[id];
  if (f.instant == kNever) return;
  f.noted = f.instant;
  ends_.add(f.instant, id);
}

void FairFlows::set_rates() {
  // A flow may have ended since it was to be given a new rate.
  std::erase_if(changing_, [&](EventId id) {
    if (flows_[id].instant >= 0) return false;
    rates_[id].changing = false;
    return true;
  });
  before_.clear();
  bounds_.clear();
  do {
    for (std::size_t i = before_.size(); i < changing_.size(); ++i) {
      fetch_ahead(changing_, i);
      meet(changing_[i]);
    }
    fill();
  } while (add_unfair());
  for (const LinkId l : touched_) links_[l].changing = links_[l].counted = 0;
  touched_.clear();
  for (std::size_t i = 0; i < changing_.size(); ++i) {
    if (i + 8 < changing_.size()) prefetch(&flows_[changing_[i + 8]], sizeof(Flow));
    Rate& r = rates_[changing_[i]];
    r.changing = false;
    const double rate = std::exchange(r.value, before_[i]);
    if (std::abs(rate - before_[i]) > kEqual * rate) schedule(changing_[i], rate);
  }
  changing_.clear();
}

// What ids[i + 1] and those after it will touch, in the order in which one thing leads to the next.
[[gnu::always_inline]] inline void FairFlows::fetch_ahead(std::span<const EventId> ids, std::size_t i) const {
  if (i + 12 < ids.size()) prefetch(&flows_[ids[i + 12]], sizeof(Flow)), prefetch(&rates_[ids[i + 12]], sizeof(Rate));
  if (i + 8 < ids.size()) prefetch(&hops_[flows_[ids[i + 8]].first], 64);
  if (i + 4 < ids.size())
    for (const Hop& hop : route(ids[i + 4])) prefetch(&links_[hop.link], sizeof(SharedLink));
}

// One more flow that changes: its links and, where it may be what holds it back, its bound.
void FairFlows::meet(EventId id) {
  before_.push_back(rates_[id].value);
  double most = std::numeric_limits<double>::infinity();
  for (const Hop& hop : route(id)) {
    SharedLink& link = links_[hop.link];
    if (link.changing++ == 0) touched_.push_back(hop.link);
    most = std::min(most, link.capacity);
  }
  if (flows_[id].bound < most) bounds_.push_back({flows_[id].bound, kOwn, id});
}

void FairFlows::count_kept(LinkId l) {
  SharedLink& link = links_[l];
  link.counted = link.changing;
  link.kept_free = link.capacity;
  link.kept_fastest = 0;
  link.kept_slowest = std::numeric_limits<double>::infinity();
  if (link.changing == link.flows.size()) return;
  for (const Place& p : link.flows) {
    const Rate& r = rates_[p.flow];
    if (r.changing) continue;
    link.kept_free -= r.value;
    link.kept_fastest = std::max(link.kept_fastest, r.value);
    if (r.bottleneck == l) link.kept_slowest = std::min(link.kept_slowest, r.value);
  }
  link.kept_free = std::max(link.kept_free, 0.0);
}

// Progressive filling: the link that gives its flows the least is full first, and they have their rate.
void FairFlows::fill() {
  shares_.assign(bounds_.begin(), bounds_.end());
  for (const EventId id : changing_) rates_[id].fixed = false;
  for (const LinkId l : touched_) {
    SharedLink& link = links_[l];
    if (link.counted != link.changing) count_kept(l);
    link.free = link.kept_free;
    link.waiting = link.changing;
    link.fastest = link.kept_fastest;
    link.held = std::numeric_limits<double>::infinity();
    shares_.push_back({link.free / link.waiting, l, 0});
  }
  std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) { return a.rate < b.rate; });
  for (std::size_t next = 0; next < shares_.size() || !grown_.empty();) {
    const Share s = next_share(next);
    if (s.link == kOwn) {
      if (!rates_[s.flow].fixed) fix(s.flow, s.rate, kOwn);
      continue;
    }
    SharedLink& link = links_[s.link];
    if (link.waiting == 0) continue;
    const double share = std::max(link.free, 0.0) / link.waiting;
    if (share > s.rate * (1 + kEqual)) {  // flows that go slower elsewhere have left it more since
      grown_.push_back({share, s.link, 0});
      std::push_heap(grown_.begin(), grown_.end(), Share::later);
      continue;
    }
    link.held = share;
    for (const Place& p : link.flows)
      if (const Rate& r = rates_[p.flow]; r.changing && !r.fixed) fix(p.flow, share, s.link);
  }
}

// The least of shares_ from `next` on and of grown_, which is taken.
FairFlows::Share FairFlows::next_share(std::size_t& next) {
  if (grown_.empty() || (next < shares_.size() && !Share::later(shares_[next], grown_.front()))) return shares_[next++];
  std::pop_heap(grown_.begin(), grown_.end(), Share::later);
  const Share s = grown_.back();
  grown_.pop_back();
  return s;
}

void FairFlows::fix(EventId id, double rate, std::uint32_t bottleneck) {
  Rate& r = rates_[id];
  r.fixed = true;
  r.value = rate;
  r.bottleneck = bottleneck;
  for (const Hop& hop : route(id)) {
    SharedLink& link = links_[hop.link];
    link.free -= rate;
    --link.waiting;
    link.fastest = std::max(link.fastest, rate);
  }
}

// Adds the flows that keep others from a fair rate, or have lost their bottleneck, to those that change. False where
// there are none.
bool FairFlows::add_unfair() {
  const std::size_t before = changing_.size();
  for (const LinkId l : touched_) {
    const SharedLink& link = links_[l];
    if (link.changing == link.flows.size()) continue;
    const bool full = link.free <= link.capacity * kEqual;
    const double too_fast = link.held * (1 + kEqual), too_slow = link.fastest * (1 - kEqual);
    const bool has_lost =
        link.kept_slowest < std::numeric_limits<double>::infinity() && (!full || link.kept_slowest < too_slow);
    if (link.kept_fastest <= too_fast && !has_lost) continue;
    for (const Place& p : link.flows) {
      const Rate& r = rates_[p.flow];
      if (r.changing) continue;
      if (r.value > too_fast || (r.bottleneck == l && (!full || r.value < too_slow))) change(p.flow);
    }
  }
  return changing_.size() > before;
}

}  // namespace gccl::sim
