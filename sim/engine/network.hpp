// The seam between the executor of schedules and what plays the messages. Model, flow and SimGrid share everything
// above it, so that they agree where messages do not meet is a property of the networks alone
// (tests/engine/simgrid_agreement.cpp).
#pragma once

#include <concepts>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "sim/engine/time.hpp"

namespace gccl::sim {

using EventId = std::uint32_t;

// The links that a message to or from a whole group takes at once, through switches that multicast or reduce: a tree,
// in the order in which the message comes to them. Those of one stage come side by side: the members' ways up, then the
// root's way down, or the other way round.
struct LinkSet {
  struct Leg {
    LinkId link;
    std::uint32_t stage;
    Nanos before;  // the latencies of the stages before
  };
  std::vector<Leg> legs;
  Nanos latency = 0;      // of all stages
  LinkId narrowest = 0;   // the root's own link, of links of one bandwidth
  double efficiency = 1;  // what such messages reach of their links' bandwidths
};

struct Message {
  EventId id;
  Card from, to;
  std::uint32_t lane;            // of the sender; no other lane of the run has this number
  Count bytes;                   // on the links
  Nanos at;                      // leaves then, >= now
  Nanos receive_ns;              // how long the receiving card is busy with it
  Nanos least_ns;                // its last byte follows its first one no sooner
  const LinkSet* set = nullptr;  // takes these links instead of the route; lives as long as the network
};

// A network plays messages and timers in virtual time and hands over everything that happens at one instant together.
// - now: integer nanoseconds since the start of the run.
// - send: once the last byte of the message has arrived, the receiving card is busy with it for receive_ns, with one
//   message at a time; then the message is complete at both ends, with one event, which is what makes 8 million
//   messages a second possible; with windows above 1 no algorithm is slowed by it. What one lane sends over the same
//   narrowest link of its routes (narrowest(), mostly its NIC's) passes it in order, the next message behind the last
//   byte of the one before: a schedule's steps are served in the order of the schedule, and a larger window hides
//   latencies without spreading one link over several peers (16 ranks, 64 MiB, broadcast scatter_allgather: 5.1 ms;
//   with a shared link 17.1 ms at window 8). Other lanes, operations and ranks share links with it, as NCCL's channels
//   do. A message over a LinkSet passes all of its links, each once, and is complete when it has passed the last.
// - wake: a timer; comes back as `id` at time `at` (>= now).
// - next: advances to the next instant at which something happens and appends the ids due then, deliveries and timers
//   alike, in any order; false when nothing is left to happen. Ids are the executor's own; it never reuses one in
//   flight.
// - stalled: where next has returned false, whether messages are left that wait for links which are down for good.
// - link_bytes: bytes carried by each link so far.
// send and next throw TimeOverflow where time would pass kTimeMax, or an error of their own where theirs ends earlier.
template <class N>
concept Network = requires(N& n, EventId id, const Message& message, Nanos at, std::vector<EventId>& due) {
  { n.now() } -> std::same_as<Nanos>;
  n.send(message);
  n.wake(id, at);
  { n.next(due) } -> std::same_as<bool>;
  { n.stalled() } -> std::same_as<bool>;
  { n.link_bytes() } -> std::same_as<std::vector<std::uint64_t>>;
};

// The link that bounds a route: the first of the least bandwidth. Requires a route that is not empty.
inline LinkId narrowest(const Cluster& cluster, const std::vector<LinkId>& route) {
  LinkId least = route.front();
  for (const LinkId l : route)
    if (cluster.links()[l].bandwidth_GBps < cluster.links()[least].bandwidth_GBps) least = l;
  return least;
}

}  // namespace gccl::sim
