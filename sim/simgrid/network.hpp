// The SimGrid engine's network: messages that share links fairly (max-min), with latencies paid in advance.
#pragma once

#include <span>
#include <unordered_map>

#include "sim/engine/network.hpp"
#include "sim/simgrid/agenda.hpp"
#include "sim/simgrid/flows.hpp"

namespace gccl::sim {

// A message waits for the sum of its route's latencies, then flows: all bytes in flight share each link of their route
// max-min fairly. (SimGrid's CM02: Casanova and Marchal, "A network model for simulation of grid application",
// LIP RR 2002-40, 2002, with equal weights.) So a lone message takes the sum of the latencies plus bytes over the
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
// next throws ClockOverflow (instant.hpp) where time would pass kClockMax.
class SimGridNetwork {
 public:
  // At most once per process: throws std::logic_error the second time.
  explicit SimGridNetwork(const Cluster& cluster);

  Nanos now() const { return now_; }
  void send(const Message& message);
  void wake(EventId id, Nanos at) { agenda_.add(at, {Kind::timer, id}); }
  bool next(std::vector<EventId>& due);
  std::vector<std::uint64_t> link_bytes() const { return link_bytes_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  enum class Kind : std::uint8_t { timer, message };
  struct Entry {
    Kind kind;
    std::uint32_t id;  // of the timer, or the slot of a message whose latencies are paid
  };
  struct Slot {
    Message message;
    std::uint32_t queue;
    std::uint32_t next;  // in its queue, or in the free list
    bool ready;          // its latencies are paid
  };
  struct Queue {  // what one lane sends over one narrowest link
    LinkId narrowest = 0;
    std::uint32_t first = kNone, last = kNone;  // those that have not entered
    std::vector<std::uint32_t> flowing;
  };
  struct Cached {  // the last route from a card: rings and trees keep their peers
    Card to = ~Card(0);
    Nanos latency_ns = 0;
    LinkId narrowest = 0;
    std::vector<LinkId> route;
  };
  const Cached& route(Card from, Card to);
  std::span<const LinkId> links_of(const Message& m);
  void take_due(std::vector<EventId>& due);
  std::uint32_t queue_of(std::uint32_t lane, LinkId narrowest);
  void go_on(Queue& queue);
  bool held_up_elsewhere(const Message& flowing, LinkId narrowest);
  void end(std::uint32_t slot, std::vector<EventId>& due);

  const Cluster& cluster_;
  Flows flows_;
  Agenda<Entry> agenda_;
  Nanos now_ = 0;
  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;
  std::vector<Queue> queues_;
  std::unordered_map<std::uint64_t, std::uint32_t> queue_of_;  // by lane and narrowest link
  std::vector<std::uint32_t> flows_on_;                        // by link
  std::vector<Nanos> receives_free_;                           // by card: when it can take its next message
  std::vector<Cached> routes_;
  std::unordered_map<const LinkSet*, std::vector<LinkId>> set_links_;
  std::vector<std::uint64_t> link_bytes_;
  std::vector<Entry> batch_;  // of the instant at hand, as are these slots
  std::vector<std::uint32_t> starting_, ended_;
};

static_assert(Network<SimGridNetwork>);

}  // namespace gccl::sim
