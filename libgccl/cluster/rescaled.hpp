// A cluster with links that are faster or slower than they are: to see what would change, and what costs how much.
#pragma once

#include <array>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

class Rescaled final : public Cluster {
 public:
  using Factors = std::array<double, std::size_t(Tier::other) + 1>;
  // Each tier's bandwidths times its factor.
  Rescaled(const Cluster& whole, const Factors& bandwidth) : whole_(whole), links_(whole.links()) {
    for (Link& l : links_) l.bandwidth_GBps *= bandwidth[std::size_t(l.tier)];
  }

  std::string_view name() const override { return whole_.name(); }
  Card cards() const override { return whole_.cards(); }
  Rank nodes() const override { return whole_.nodes(); }
  Rank node_of(Card c) const override { return whole_.node_of(c); }
  const std::vector<Link>& links() const override { return links_; }
  std::string link_name(LinkId l) const override { return whole_.link_name(l); }
  void route(Card from, Card to, std::vector<LinkId>& out) const override { whole_.route(from, to, out); }
  const CardCosts& costs(Card card) const override { return whole_.costs(card); }
  Count eager_bytes() const override { return whole_.eager_bytes(); }
  std::string_view backends() const override { return whole_.backends(); }
  const TransportModels& transports() const override { return whole_.transports(); }
  const Protocols& protocols() const override { return whole_.protocols(); }
  View::Wiring wiring() const override { return whole_.wiring(); }
  double in_switch(std::span<const Card> cards) const override { return whole_.in_switch(cards); }
  Rank grid_columns() const override { return whole_.grid_columns(); }

 private:
  const Cluster& whole_;
  std::vector<Link> links_;
};

}  // namespace gccl
