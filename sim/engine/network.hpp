// The seam between the executor of schedules and what plays the messages.
#pragma once

#include <concepts>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace gccl::sim {

using EventId = std::uint32_t;

// A network plays messages and timers in virtual time and hands over everything that happens at one instant together.
// - now: integer nanoseconds since the start of the run.
// - send: message `id` of `bytes` bytes leaves card `from` at time `at` (>= now) for another card. When its last byte has
//   arrived it is complete at both ends.
// - wake: a timer; comes back as `id` at time `at` (>= now).
// - next: advances to the next instant at which something happens and appends the ids due then, deliveries and timers
//   alike, in any order; false when nothing is left to happen. Ids are the executor's own; it never reuses one in flight.
// - link_bytes: bytes carried by each link so far.
template <class N>
concept Network = requires(N& n, EventId id, Card card, Count bytes, Nanos at, std::vector<EventId>& due) {
  { n.now() } -> std::same_as<Nanos>;
  n.send(id, card, card, bytes, at);
  n.wake(id, at);
  { n.next(due) } -> std::same_as<bool>;
  { n.link_bytes() } -> std::same_as<std::vector<std::uint64_t>>;
};

}  // namespace gccl::sim
