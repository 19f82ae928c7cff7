// A network whose messages share links fairly (max-min), with latencies paid in advance: of the flow and SimGrid
// engines.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>
#include <unordered_map>

#include "libgccl/cluster/fair_messages.hpp"
#include "sim/engine/agenda.hpp"
#include "sim/engine/link_changes.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/ways.hpp"

namespace gccl::sim {

// A message waits for the sum of its route's latencies, then flows: all bytes in flight share each link of their route
// max-min fairly. (Casanova and Marchal, "A network model for simulation of grid application", LIP RR 2002-40, 2002,
// with equal weights: SimGrid's CM02.) So a lone message takes the sum of the latencies plus bytes over the
// narrowest bandwidth; one without bytes takes the latencies alone. A lane's messages enter their narrowest link in
// order, each after the end of the one before, while its own latencies pass. Only where other traffic holds that one up
// on another link, and it goes to another card, the next one enters concurrently and uses what is left: a busy receiver
// must not stop what is meant for others. Two that share a receiver evenly do not count as held up, and move on to the
// next one together: ranks that enter an all-to-all of long blocks at slightly different times stay in such convoys (8
// ranks on one switch, 16 MiB blocks, after a 1 KiB broadcast: 13.8 ms, and 5.2 ms on the model engine).
//
// A message over a LinkSet is one flow over all of its links: a switch that multicasts, or waits for all summands, goes
// at the pace of the slowest.
//
// `Flows` finds the rates:
// - start(id, route, bytes, least_ns, now): a flow begins that takes at least least_ns. Route and bytes are not empty,
//   and `now` is not before the last instant that advance() returned;
// - advance(limit, ended): plays until the first instant in which flows end, or until `limit` (< 0: none), whichever is
//   earlier. Appends the ids of the flows that ended, and returns the instant; -1: there is no limit, and links that
//   are down hold back all flows for good. Requires !idle();
// - kTimeMax, Overflow: next throws one where time would pass that.
template <class Flows>
class SharedNetwork {
 public:
  // `changes` outlive it; null: links stay as they are. Flows that take part in them have set_capacity(), left() and
  // move().
  explicit SharedNetwork(const Cluster& cluster, const LinkChanges* changes = nullptr);

  Nanos now() const { return now_; }
  void send(const Message& message);
  void wake(EventId id, Nanos at) { add(at, {Kind::timer, id}); }
  bool next(std::vector<EventId>& due);
  bool stalled() const { return !flows_.idle() || !waiting_.empty(); }
  std::vector<std::uint64_t> link_bytes() const { return link_bytes_; }
  const Detours& detours() const { return detours_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  enum class Kind : std::uint8_t { timer, message, change };
  struct Entry {
    Kind kind;
    std::uint32_t id;  // of the timer, or the slot of a message whose latencies are paid
  };
  struct Slot {
    Message message;
    std::uint32_t way;  // Ways::kNone: the message has a LinkSet
    std::uint32_t queue;
    std::uint32_t next;  // in its queue, or in the free list
    bool ready;          // its latencies are paid
  };
  struct Queue {  // what one lane sends over one narrowest link
    LinkId narrowest = 0;
    std::uint32_t first = kNone, last = kNone;  // those that have not entered
    std::vector<std::uint32_t> flowing;
  };
  std::span<const LinkId> route(const Slot& s) {
    return s.way == Ways::kNone ? std::span<const LinkId>(routes_of_sets_[s.message.set]) : ways_[s.way].links();
  }
  void add(Nanos at, const Entry& entry) {
    agenda_.add(at, entry);
    expected_ += entry.kind != Kind::change;
  }
  void take_due(std::vector<EventId>& due);
  std::uint32_t queue_of(std::uint32_t lane, LinkId narrowest);
  void go_on(Queue& queue);
  bool held_up_elsewhere(const Slot& flowing, LinkId narrowest);
  void end(std::uint32_t slot, std::vector<EventId>& due);
  void carry_out(const LinkChanges::Instant& instant);
  bool turn(Slot& slot, Count left);
  bool down(const Slot& slot);
  void find(Card from, Card to, Ways::Found* found);
  double bandwidth(LinkId l) const { return changed_.empty() ? cluster_.links()[l].bandwidth_GBps : changed_[l].first; }

  const Cluster& cluster_;
  const LinkChanges* const changes_;
  Detours detours_;
  std::vector<std::pair<double, Nanos>> changed_;  // by link: bandwidth, further latency; empty where none ever changes
  std::vector<std::uint32_t> changes_due_;
  Flows flows_;
  Agenda<Entry> agenda_;
  std::size_t expected_ = 0;  // entries of it that are no changes of links: these alone keep nobody waiting
  Nanos now_ = 0;
  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;
  std::vector<Queue> queues_;
  std::unordered_map<std::uint64_t, std::uint32_t> queue_of_;  // by lane and narrowest link
  std::vector<std::uint32_t> latest_queue_;                    // by lane
  std::vector<std::uint32_t> flows_on_;                        // by link
  std::vector<Nanos> receives_free_;                           // by card: when it can take its next message
  Ways ways_;
  std::unordered_map<const LinkSet*, std::vector<LinkId>> routes_of_sets_;
  std::vector<std::uint64_t> link_bytes_;
  std::vector<Entry> batch_;  // of the instant at hand, as are these slots
  std::vector<std::uint32_t> starting_, ended_;
  std::vector<std::uint32_t> waiting_;  // slots of messages without bytes, until their links are up
};

template <class Flows>
SharedNetwork<Flows>::SharedNetwork(const Cluster& cluster, const LinkChanges* changes)
    : cluster_(cluster),
      changes_(changes),
      detours_(cluster),
      flows_(cluster.links()),
      flows_on_(cluster.links().size()),
      receives_free_(cluster.cards()),
      ways_(cluster.cards(), [this](Card from, Card to, Ways::Found* found) { find(from, to, found); }),
      link_bytes_(cluster.links().size()) {
  if (!changes) return;
  for (const Link& l : cluster.links()) changed_.emplace_back(l.bandwidth_GBps, 0);
  for (std::uint32_t i = 0; i < changes->instants().size(); ++i) add(changes->instants()[i].at, {Kind::change, i});
}

// New messages go as the links are now; those that are on their way take the ways that new ones would.
template <class Flows>
void SharedNetwork<Flows>::carry_out(const LinkChanges::Instant& instant) {
  if constexpr (requires { flows_.set_capacity(LinkId(), 0.0, Nanos()); }) {
    for (const LinkChanges::Change& c : instant.changes) {
      changed_[c.link] = {c.bandwidth_GBps, c.extra_ns};
      flows_.set_capacity(c.link, c.bandwidth_GBps, now_);
    }
    ways_.find_anew();
    if (instant.reroutes) {
      detours_.avoid(instant.dead);
      for (Queue& q : queues_) {
        for (std::uint32_t i = q.first; i != kNone; i = slots_[i].next) turn(slots_[i], slots_[i].message.bytes);
        for (const std::uint32_t i : q.flowing) {
          const Count bytes = slots_[i].message.bytes;
          for (const LinkId l : route(slots_[i])) --flows_on_[l];
          if (turn(slots_[i], bytes ? Count(flows_.left(i, now_)) : 0) && bytes) flows_.move(i, route(slots_[i]), now_);
          for (const LinkId l : route(slots_[i])) ++flows_on_[l];
        }
      }
    }
    std::erase_if(waiting_, [&](std::uint32_t i) {
      if (down(slots_[i])) return false;
      ended_.push_back(i);
      return true;
    });
  }
}

// A message without bytes needs its links, too; flows with bytes stand still by themselves.
template <class Flows>
bool SharedNetwork<Flows>::down(const Slot& slot) {
  return changes_ && std::ranges::any_of(route(slot), [&](LinkId l) { return changed_[l].first == 0; });
}

// Lets what is left of the message take the way that a new one would. False where that has the same links.
template <class Flows>
bool SharedNetwork<Flows>::turn(Slot& slot, Count left) {
  if (slot.way == Ways::kNone) return false;
  const std::uint32_t before = slot.way;
  slot.way = ways_.of(slot.message.from, slot.message.to);
  ways_.hold(slot.way);
  for (const LinkId l : ways_[before].links()) link_bytes_[l] -= left;
  for (const LinkId l : ways_[slot.way].links()) link_bytes_[l] += left;
  const bool turned = !std::ranges::equal(ways_[before].links(), ways_[slot.way].links());
  ways_.release(before);
  return turned;
}

template <class Flows>
void SharedNetwork<Flows>::find(Card from, Card to, Ways::Found* found) {
  cluster_.route(from, to, found->links);
  if (changes_) detours_.around(from, to, &found->links);
  found->narrowest = found->links.empty() ? kNone : narrowest(cluster_, found->links);
  found->latency = 0;
  for (const LinkId l : found->links)
    found->latency += cluster_.links()[l].latency_ns + (changes_ ? changed_[l].second : 0);
}

template <class Flows>
void SharedNetwork<Flows>::send(const Message& m) {
  std::uint32_t i = free_;
  if (i == kNone) {
    i = std::uint32_t(slots_.size());
    slots_.emplace_back();
  } else {
    free_ = slots_[i].next;
  }
  Slot& slot = slots_[i];
  slot = {.message = m, .way = Ways::kNone, .queue = 0, .next = kNone, .ready = false};
  Nanos latency;
  if (m.set) {
    std::vector<LinkId>& links = routes_of_sets_[m.set];
    if (links.empty())
      for (const LinkSet::Leg& leg : m.set->legs) links.push_back(leg.link);
    latency = m.set->latency;
    slot.queue = queue_of(m.lane, m.set->narrowest);
  } else {
    slot.way = ways_.of(m.from, m.to);
    ways_.hold(slot.way);
    const Way& way = ways_[slot.way];
    if (way.length == 0) slot.message.bytes = 0;
    latency = way.latency;
    slot.queue = queue_of(m.lane, way.narrowest);
  }
  for (const LinkId l : route(slot)) link_bytes_[l] += m.bytes;
  Queue& q = queues_[slot.queue];
  (q.first == kNone ? q.first : slots_[q.last].next) = i;
  q.last = i;
  add(m.at + latency, {Kind::message, i});
}

// The last byte is there: the next one of the queue follows, and the receiving card takes this one.
template <class Flows>
void SharedNetwork<Flows>::end(std::uint32_t slot, std::vector<EventId>& due) {
  const Message& m = slots_[slot].message;
  if (m.receive_ns > 0) {
    Nanos& free = receives_free_[m.to];
    free = std::max(free, now_) + m.receive_ns;
    if (free > kTimeMax) throw TimeOverflow();
    add(free, {Kind::timer, m.id});
  } else {
    due.push_back(m.id);
  }
  for (const LinkId l : route(slots_[slot])) --flows_on_[l];
  if (slots_[slot].way != Ways::kNone) ways_.release(slots_[slot].way);
  Queue& q = queues_[slots_[slot].queue];
  std::erase(q.flowing, slot);
  slots_[slot].next = free_;
  free_ = slot;
  go_on(q);
}

template <class Flows>
std::uint32_t SharedNetwork<Flows>::queue_of(std::uint32_t lane, LinkId narrowest) {
  if (lane >= latest_queue_.size()) latest_queue_.resize(lane + 1, kNone);
  std::uint32_t& latest = latest_queue_[lane];
  if (latest != kNone && queues_[latest].narrowest == narrowest) return latest;
  const auto [at, fresh] = queue_of_.try_emplace(std::uint64_t(lane) << 32 | narrowest, std::uint32_t(queues_.size()));
  if (fresh) queues_.push_back({.narrowest = narrowest, .flowing = {}});
  return latest = at->second;
}

// Lets the messages enter whose turn it is.
template <class Flows>
void SharedNetwork<Flows>::go_on(Queue& q) {
  while (q.first != kNone && slots_[q.first].ready) {
    const std::uint32_t slot = q.first;
    const Message& m = slots_[slot].message;
    for (const std::uint32_t f : q.flowing)
      if (slots_[f].message.to == m.to || !held_up_elsewhere(slots_[f], q.narrowest)) return;
    q.first = slots_[slot].next;
    q.flowing.push_back(slot);
    for (const LinkId l : route(slots_[slot])) ++flows_on_[l];
    (m.bytes > 0 ? starting_ : down(slots_[slot]) ? waiting_ : ended_).push_back(slot);
  }
}

// True when a link of its route gives it much less than the narrowest one does: two messages that meet at a receiver
// for a moment are no reason to spread the sender over several, four that would go on to meet at the next one are.
template <class Flows>
bool SharedNetwork<Flows>::held_up_elsewhere(const Slot& flowing, LinkId narrowest) {
  const auto rate = [&](LinkId l) { return bandwidth(l) / flows_on_[l]; };
  for (const LinkId l : route(flowing))
    if (rate(l) < rate(narrowest) * kHeldUpElsewhere) return true;
  return false;
}

// Whatever the agenda has for now: timers are due, messages start to flow. They start in an order of their own, so that
// the order of the sends cannot reach the last bits of the solver's sums; and end in the order of their ids.
template <class Flows>
void SharedNetwork<Flows>::take_due(std::vector<EventId>& due) {
  while (!agenda_.empty() && agenda_.next() <= now_) {
    agenda_.take(batch_);
    for (const Entry& e : batch_) {
      expected_ -= e.kind != Kind::change;
      if (e.kind == Kind::timer) {
        due.push_back(e.id);
        continue;
      }
      if (e.kind == Kind::change) {
        changes_due_.push_back(e.id);
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
    flows_.start(slot, route(slots_[slot]), m.bytes, m.least_ns, now_);
  }
  starting_.clear();
  for (const std::uint32_t i : changes_due_) carry_out(changes_->instants()[i]);
  changes_due_.clear();
}

template <class Flows>
bool SharedNetwork<Flows>::next(std::vector<EventId>& due) {
  const std::size_t before = due.size();
  for (;;) {
    take_due(due);
    if (due.size() > before) return true;
    if (!ended_.empty()) continue;
    if (!flows_.idle()) {
      const Nanos at = flows_.advance(agenda_.empty() ? -1 : agenda_.next(), ended_);
      if (at < 0) return false;
      now_ = std::max(now_, at);
    } else if (expected_ > 0 || (!waiting_.empty() && !agenda_.empty())) {
      now_ = agenda_.next();
    } else {
      return false;
    }
    if (now_ > Flows::kTimeMax) throw typename Flows::Overflow();
  }
}

}  // namespace gccl::sim
