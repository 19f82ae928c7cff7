// A cluster as closed forms see it: under one protocol; or where only a part takes time, to see what is busiest.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

class Part final : public Cluster {
 public:
  // What takes time.
  struct Kept {
    bool handling = false, memory = false, inside = false, network = false;
  };
  // Everything.
  Part(const Cluster& whole, const Protocol& protocol)
      : whole_(whole), inside_(protocol.inside), network_(protocol.network), links_(whole.links()) {
    for (Card card = 0; card < whole.cards(); ++card) costs_.push_back(whole.costs(card));
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
    for (Link& l : links_) {
      l.latency_ns = 0;
      const bool inside = l.tier == Tier::card || l.tier == Tier::node;
      if (!(inside ? kept.inside : kept.network)) l.bandwidth_GBps = std::numeric_limits<double>::infinity();
    }
  }
  // What the protocol adds to a message.
  const Protocol::Way& way(Card from, Card to) const { return node_of(from) == node_of(to) ? inside_ : network_; }

  std::string_view name() const override { return whole_.name(); }
  Card cards() const override { return whole_.cards(); }
  Rank nodes() const override { return whole_.nodes(); }
  Rank node_of(Card c) const override { return whole_.node_of(c); }
  const std::vector<Link>& links() const override { return links_; }
  std::string link_name(LinkId l) const override { return whole_.link_name(l); }
  void route(Card from, Card to, std::vector<LinkId>& out) const override { whole_.route(from, to, out); }
  const CardCosts& costs(Card card) const override { return costs_[card]; }
  Count eager_bytes() const override { return whole_.eager_bytes(); }
  Rank grid_columns() const override { return whole_.grid_columns(); }
  double in_switch(std::span<const Card> cards) const override { return whole_.in_switch(cards); }
  View::Wiring wiring() const override { return whole_.wiring(); }

 private:
  const Cluster& whole_;
  Protocol::Way inside_, network_;
  std::vector<Link> links_;
  std::vector<CardCosts> costs_;  // by card
};

}  // namespace gccl
