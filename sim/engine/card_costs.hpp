// What cards and protocols cost, in the engine's units.
#pragma once

#include <algorithm>
#include <vector>

#include "libgccl/schedule/types.hpp"
#include "sim/engine/time.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

struct ProtocolCosts {
  struct Way {
    Nanos latency = 0;
    double bytes_on_links = 1;  // for each byte of a message
    Count on_links(Count bytes) const { return Count(double(bytes) * bytes_on_links + 0.5); }
  };
  ProtocolCosts() = default;
  ProtocolCosts(const Protocol& p)
      : none(false),
        operation(duration(p.operation_ns)),
        inside(costs_of(p.inside)),
        network(costs_of(p.network)),
        channel_ns_per_byte(p.channel_GBps > 0 ? 1 / p.channel_GBps : 0),
        combine_ns_per_byte(p.combine_GBps > 0 ? 1 / p.combine_GBps : 0) {}
  static Way costs_of(const Protocol::Way& w) { return {duration(w.latency_ns), 1 / w.efficiency}; }
  const Way& way(bool same_node) const { return same_node ? inside : network; }
  // What a message takes at least in its channel.
  Nanos least(Count bytes) const { return channel_ns_per_byte > 0 ? duration(double(bytes) * channel_ns_per_byte) : 0; }
  bool none = true;
  Nanos operation = 0;
  Way inside, network;
  double channel_ns_per_byte = 0, combine_ns_per_byte = 0;
};

// What a message asks of the rank that it goes to.
struct Place {
  Card card;
  Rank node;
  Nanos receive_overhead;
};

struct alignas(64) CardState {
  Nanos enters = 0, overhead = 0;
  double combine_ns_per_byte = 0, copy_ns_per_byte = 0;
  Nanos sends_free = 0, unit_free = 0;  // when the card can start its next message, its next combine or copy
  double slowdown = 1;                  // of a straggler

  double combine(const ProtocolCosts& by) const {
    return std::max(combine_ns_per_byte, by.combine_ns_per_byte * slowdown);
  }
  // When a message has been handled that the card is asked to start then.
  Nanos handled(Nanos asked) { return sends_free = std::max(asked, sends_free) + overhead; }
};

// By world rank, stragglers slowed.
inline std::vector<Place> places_of(const Workload& workload) {
  std::vector<Place> places;
  for (const Card card : workload.cards)
    places.push_back({card, workload.cluster->node_of(card), workload.cluster->costs(card).receive_overhead_ns});
  for (const Straggler& s : workload.stragglers)
    places[s.rank].receive_overhead = duration(double(places[s.rank].receive_overhead) * s.slowdown);
  return places;
}

inline std::vector<CardState> states_of(const Workload& workload) {
  std::vector<CardState> states;
  for (const Card card : workload.cards) {
    const CardCosts& c = workload.cluster->costs(card);
    states.push_back({.overhead = c.overhead_ns,
                      .combine_ns_per_byte = c.combine_GBps > 0 ? 1 / c.combine_GBps : 0,
                      .copy_ns_per_byte = c.copy_GBps > 0 ? 1 / c.copy_GBps : 0});
  }
  for (const Straggler& s : workload.stragglers) {
    CardState& c = states[s.rank];
    c.enters = s.start_ns;
    c.slowdown = s.slowdown;
    c.overhead = duration(double(c.overhead) * s.slowdown);
    c.combine_ns_per_byte *= s.slowdown;
    c.copy_ns_per_byte *= s.slowdown;
  }
  return states;
}

}  // namespace gccl::sim
