// The SimGrid engine's network: messages that share links fairly (max-min), with latencies paid in advance.
#pragma once

#include "sim/engine/network.hpp"
#include "sim/simgrid/agenda.hpp"
#include "sim/simgrid/flows.hpp"

namespace gccl::sim {

// A message waits for the sum of its route's latencies, then flows: all bytes under way share each link of their route
// max-min fairly. (SimGrid's CM02: Casanova and Marchal, "A network model for simulation of grid application",
// LIP RR 2002-40, 2002, with equal weights.) So a lone message takes the sum of the latencies plus bytes over the
// narrowest bandwidth; one without bytes takes the latencies alone.
class SimGridNetwork {
 public:
  // At most once per process: throws std::logic_error the second time.
  explicit SimGridNetwork(const Cluster& cluster);

  Nanos now() const { return now_; }
  void send(EventId id, Card from, Card to, Count bytes, Nanos at);
  void wake(EventId id, Nanos at) { agenda_.add(at, {id, 0, 0, 0}); }
  bool next(std::vector<EventId>& due);
  std::vector<std::uint64_t> link_bytes() const { return link_bytes_; }

 private:
  struct Entry {  // a message whose latencies are paid, or, without bytes, a timer
    EventId id;
    Card from, to;
    Count bytes;
  };
  struct Cached {  // the last route from a card: rings and trees keep their peers
    Card to = ~Card(0);
    Nanos latency_ns = 0;
    std::vector<LinkId> route;
  };
  const Cached& route(Card from, Card to);
  void take_due(std::vector<EventId>& due);

  const Cluster& cluster_;
  Flows flows_;
  Agenda<Entry> agenda_;
  Nanos now_ = 0;
  std::vector<Cached> routes_;
  std::vector<std::uint64_t> link_bytes_;
  std::vector<Entry> batch_, starting_;  // of the instant at hand
};

static_assert(Network<SimGridNetwork>);

}  // namespace gccl::sim
