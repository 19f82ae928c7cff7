// A cluster of which only a part takes time: what is busiest with a call shows there.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

// The same cluster where only some things take time.
class Part final : public Cluster {
 public:
  struct Kept {
    bool handling = false, memory = false, inside = false, network = false;
  };
  Part(const Cluster& whole, Kept kept) : whole_(whole), links_(whole.links()), costs_(whole.cards()) {
    for (Card card = 0; card < whole.cards(); ++card) {
      const CardCosts& c = whole.costs(card);
      // A rank sends and receives at the same time.
      if (kept.handling) costs_[card].overhead_ns = std::max(c.overhead_ns, c.receive_overhead_ns);
      if (kept.memory) costs_[card].combine_GBps = c.combine_GBps, costs_[card].copy_GBps = c.copy_GBps;
    }
    for (Link& l : links_) {
      l.latency_ns = 0;
      const bool inside = l.tier == Tier::card || l.tier == Tier::node;
      if (!(inside ? kept.inside : kept.network)) l.bandwidth_GBps = std::numeric_limits<double>::infinity();
    }
  }
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
  std::vector<Link> links_;
  std::vector<CardCosts> costs_;  // by card
};

}  // namespace gccl
