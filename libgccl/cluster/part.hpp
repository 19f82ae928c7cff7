// A cluster as closed forms see it: under one protocol; or where only a part takes time, to see what is busiest.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "libgccl/cluster/changed.hpp"

namespace gccl {

class Part final : public ChangedCluster {
 public:
  // What takes time.
  struct Kept {
    bool handling = false, memory = false;
    const std::vector<bool>* links = nullptr;  // by link; null: none
  };
  // Everything.
  Part(const Cluster& whole, const Protocol& protocol)
      : ChangedCluster(whole), inside_(protocol.inside), network_(protocol.network) {
    for (Card card = 0; card < whole.cards(); ++card) {
      costs_.push_back(whole.costs(card));
      costs_.back().combine_GBps = protocol.combine(costs_.back().combine_GBps);
    }
  }
  // Without latencies.
  Part(const Cluster& whole, const Protocol& protocol, Kept kept) : Part(whole, protocol) {
    inside_.latency_ns = network_.latency_ns = 0;
    for (CardCosts& c : costs_) {
      // A rank sends and receives at the same time.
      c.overhead_ns = kept.handling ? std::max(c.overhead_ns, c.receive_overhead_ns) : 0;
      c.receive_overhead_ns = 0;
      if (!kept.memory) c.combine_GBps = c.copy_GBps = 0;
    }
    for (std::size_t l = 0; l < links_.size(); ++l) {
      links_[l].latency_ns = 0;
      if (!kept.links || !(*kept.links)[l]) links_[l].bandwidth_GBps = std::numeric_limits<double>::infinity();
    }
  }
  // What the protocol adds to a message.
  const Protocol::Way& way(Card from, Card to) const { return node_of(from) == node_of(to) ? inside_ : network_; }

  const CardCosts& costs(Card card) const override { return costs_[card]; }

 private:
  Protocol::Way inside_, network_;
  std::vector<CardCosts> costs_;  // by card
};

}  // namespace gccl
