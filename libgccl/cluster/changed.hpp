// A cluster that differs from another one in what its links or its cards cost.
#pragma once

#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

// `whole` outlives it. A class of its own says what is different, and does the rest as `whole` does.
class ChangedCluster : public Cluster {
 public:
  explicit ChangedCluster(const Cluster& whole) : whole_(whole), links_(whole.links()) {}

  std::string_view name() const override { return whole_.name(); }
  Card cards() const override { return whole_.cards(); }
  Rank nodes() const override { return whole_.nodes(); }
  Rank node_of(Card c) const override { return whole_.node_of(c); }
  const Links& links() const override { return links_; }
  std::string link_name(LinkId l) const override { return whole_.link_name(l); }
  void route(Card from, Card to, std::vector<LinkId>& out) const override { whole_.route(from, to, out); }
  const CardCosts& costs(Card card) const override { return whole_.costs(card); }
  Count eager_bytes() const override { return whole_.eager_bytes(); }
  std::string_view backends() const override { return whole_.backends(); }
  const TransportModels& transports() const override { return whole_.transports(); }
  const Protocols& protocols() const override { return whole_.protocols(); }
  const Corrections& corrections() const override { return whole_.corrections(); }
  Rank hosts(Rank node) const override { return whole_.hosts(node); }
  View::Wiring wiring() const override { return whole_.wiring(); }
  double in_switch(std::span<const Card> cards) const override { return whole_.in_switch(cards); }
  Rank grid_columns() const override { return whole_.grid_columns(); }

 protected:
  const Cluster& whole_;
  Links links_;
};

}  // namespace gccl
