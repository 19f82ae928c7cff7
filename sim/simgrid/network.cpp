#include "sim/simgrid/network.hpp"

#include <algorithm>
#include <tuple>

#include "sim/simgrid/instant.hpp"

namespace gccl::sim {

namespace {

constexpr double kHeldUp = 0.4;  // of the rate of the narrowest link

}  // namespace

SimGridNetwork::SimGridNetwork(const Cluster& cluster)
    : cluster_(cluster),
      flows_(cluster.links()),
      flows_on_(cluster.links().size()),
      receives_free_(cluster.cards()),
      routes_(cluster.cards()),
      link_bytes_(cluster.links().size()) {}

const SimGridNetwork::Cached& SimGridNetwork::route(Card from, Card to) {
  Cached& cached = routes_[from];
  if (cached.to != to) {
    cluster_.route(from, to, cached.route);
    cached.to = to;
    cached.latency_ns = 0;
    cached.narrowest = cached.route.empty() ? kNone : narrowest(cluster_, cached.route);
    for (LinkId l : cached.route) cached.latency_ns += cluster_.links()[l].latency_ns;
  }
  return cached;
}

std::span<const LinkId> SimGridNetwork::links_of(const Message& m) {
  if (!m.set) return route(m.from, m.to).route;
  std::vector<LinkId>& links = set_links_[m.set];
  if (links.empty())
    for (const LinkSet::Leg& leg : m.set->legs) links.push_back(leg.link);
  return links;
}

void SimGridNetwork::send(const Message& m) {
  const std::span<const LinkId> links = links_of(m);
  for (LinkId l : links) link_bytes_[l] += m.bytes;
  const Nanos latency_ns = m.set ? m.set->latency : route(m.from, m.to).latency_ns;
  const LinkId narrowest = m.set ? m.set->narrowest : route(m.from, m.to).narrowest;
  std::uint32_t slot = free_;
  if (slot == kNone) {
    slot = std::uint32_t(slots_.size());
    slots_.emplace_back();
  } else {
    free_ = slots_[slot].next;
  }
  const std::uint32_t queue = queue_of(m.lane, narrowest);
  slots_[slot] = {m, queue, kNone, false};
  if (links.empty()) slots_[slot].message.bytes = 0;
  Queue& q = queues_[queue];
  (q.first == kNone ? q.first : slots_[q.last].next) = slot;
  q.last = slot;
  agenda_.add(m.at + latency_ns, {Kind::message, slot});
}

// The last byte is there: the next one of the queue follows, and the receiving card takes this one.
void SimGridNetwork::end(std::uint32_t slot, std::vector<EventId>& due) {
  const Message& m = slots_[slot].message;
  if (m.receive_ns > 0) {
    Nanos& free = receives_free_[m.to];
    free = std::max(free, now_) + m.receive_ns;
    if (free > kTimeMax) throw TimeOverflow();
    agenda_.add(free, {Kind::timer, m.id});
  } else {
    due.push_back(m.id);
  }
  for (const LinkId l : links_of(m)) --flows_on_[l];
  Queue& q = queues_[slots_[slot].queue];
  std::erase(q.flowing, slot);
  slots_[slot].next = free_;
  free_ = slot;
  go_on(q);
}

std::uint32_t SimGridNetwork::queue_of(std::uint32_t lane, LinkId narrowest) {
  const auto [at, fresh] = queue_of_.try_emplace(std::uint64_t(lane) << 32 | narrowest, std::uint32_t(queues_.size()));
  if (fresh) queues_.push_back({.narrowest = narrowest, .flowing = {}});
  return at->second;
}

// Lets the messages enter whose turn it is.
void SimGridNetwork::go_on(Queue& q) {
  while (q.first != kNone && slots_[q.first].ready) {
    const std::uint32_t slot = q.first;
    const Message& m = slots_[slot].message;
    for (const std::uint32_t f : q.flowing)
      if (slots_[f].message.to == m.to || !held_up_elsewhere(slots_[f].message, q.narrowest)) return;
    q.first = slots_[slot].next;
    q.flowing.push_back(slot);
    for (const LinkId l : links_of(m)) ++flows_on_[l];
    (m.bytes == 0 ? ended_ : starting_).push_back(slot);
  }
}

// True when a link of its route gives it much less than the narrowest one does: two messages that meet at a receiver
// for a moment are no reason to spread the sender over several, four that would go on to meet at the next one are.
bool SimGridNetwork::held_up_elsewhere(const Message& m, LinkId narrowest) {
  const auto rate = [&](LinkId l) { return cluster_.links()[l].bandwidth_GBps / flows_on_[l]; };
  for (const LinkId l : links_of(m))
    if (rate(l) < rate(narrowest) * kHeldUp) return true;
  return false;
}

// Whatever the agenda has for now: timers are due, messages start to flow. They start in an order of their own, so that
// the order of the sends cannot reach the last bits of the solver's sums; and end in the order of their ids.
void SimGridNetwork::take_due(std::vector<EventId>& due) {
  while (!agenda_.empty() && agenda_.next() <= now_) {
    agenda_.take(batch_);
    for (const Entry& e : batch_) {
      if (e.kind == Kind::timer) {
        due.push_back(e.id);
        continue;
      }
      slots_[e.id].ready = true;
      go_on(queues_[slots_[e.id].queue]);
    }
  }
  const auto by_id = [&](std::uint32_t a, std::uint32_t b) { return slots_[a].message.id < slots_[b].message.id; };
  if (!std::is_sorted(ended_.begin(), ended_.end(), by_id)) std::sort(ended_.begin(), ended_.end(), by_id);
  for (std::size_t i = 0; i < ended_.size(); ++i) end(ended_[i], due);
  ended_.clear();
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const Message &x = slots_[a].message, &y = slots_[b].message;
    return std::tie(x.from, x.to, x.bytes) < std::tie(y.from, y.to, y.bytes);
  };
  if (!std::is_sorted(starting_.begin(), starting_.end(), before))
    std::sort(starting_.begin(), starting_.end(), before);
  for (const std::uint32_t slot : starting_) {
    const Message& m = slots_[slot].message;
    flows_.start(slot, links_of(m), m.bytes, now_);
  }
  starting_.clear();
}

bool SimGridNetwork::next(std::vector<EventId>& due) {
  const std::size_t before = due.size();
  for (;;) {
    take_due(due);
    if (due.size() > before) return true;
    if (!flows_.idle()) {
      now_ = std::max(now_, flows_.advance(agenda_.empty() ? -1 : agenda_.next(), ended_));
    } else if (!agenda_.empty()) {
      now_ = agenda_.next();
    } else {
      return false;
    }
    if (now_ > kClockMax) throw ClockOverflow();
  }
}

}  // namespace gccl::sim
