// The simplest cluster: every card has one link up to a switch and one down from it. For tests and benchmarks.
#pragma once

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

class Star final : public Cluster {
 public:
  Star(Card cards, double GBps, Nanos latency_ns, CardCosts costs = {}, Count eager_bytes = ~Count(0))
      : costs_(costs), eager_bytes_(eager_bytes), links_(2 * std::size_t(cards), Link{GBps, latency_ns, Tier::card}) {}

  std::string_view name() const override { return "star"; }
  Card cards() const override { return Card(links_.size() / 2); }
  Rank nodes() const override { return 1; }
  Rank node_of(Card) const override { return 0; }
  const Links& links() const override { return links_; }
  std::string link_name(LinkId l) const override { return "card" + std::to_string(l / 2) + (l % 2 ? ".in" : ".out"); }
  void route(Card from, Card to, std::vector<LinkId>& out) const override {
    out.clear();
    if (from != to) out.assign({2 * from, 2 * to + 1});
  }
  const CardCosts& costs(Card) const override { return costs_; }
  Count eager_bytes() const override { return eager_bytes_; }
  Rank grid_columns() const override { return 0; }

 private:
  CardCosts costs_;
  Count eager_bytes_;
  Links links_;
};

}  // namespace gccl
