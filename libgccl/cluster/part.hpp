// A cluster as closed forms see it: under one protocol; or where only a part takes time, to see what is busiest.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

inline bool inside_nodes(const Link& link) { return link.tier == Tier::card || link.tier == Tier::node; }

// Nothing is copied from the cluster, which it holds: a model has several of them, and a cluster a million links.
class Part {
 public:
  // What takes time.
  struct Kept {
    bool handling = false, memory = false;
    enum class Links : std::uint8_t { none, all, inside, network } links = Links::none;
    double bandwidth_GBps = 0;  // of the links inside nodes
  };
  // Everything.
  Part(std::shared_ptr<const Cluster> whole, const Protocol& protocol)
      : whole_(std::move(whole)),
        links_(whole_->links()),
        inside_(protocol.inside),
        network_(protocol.network),
        combine_GBps_(protocol.combine_GBps) {}
  // Without latencies.
  Part(std::shared_ptr<const Cluster> whole, const Protocol& protocol, const Kept& kept)
      : Part(std::move(whole), protocol) {
    inside_.latency_ns = network_.latency_ns = 0;
    everything_ = false;
    kept_ = kept;
  }

  const Cluster& whole() const { return *whole_; }
  bool everything() const { return everything_; }  // takes time
  std::size_t links() const { return links_.size(); }
  Rank node_of(Card c) const { return whole_->node_of(c); }
  void route(Card from, Card to, std::vector<LinkId>& out) const { whole_->route(from, to, out); }

  // What the protocol adds to a message.
  const Protocol::Way& way(Card from, Card to) const { return node_of(from) == node_of(to) ? inside_ : network_; }
  // Infinite where a link takes no time.
  double bandwidth_GBps(LinkId l) const {
    const Link& link = links_[l];
    return everything_ || keeps(link) ? link.bandwidth_GBps : std::numeric_limits<double>::infinity();
  }
  Nanos latency_ns(LinkId l) const { return everything_ ? links_[l].latency_ns : 0; }
  CardCosts costs(Card card) const {
    CardCosts c = whole_->costs(card);
    c.combine_GBps = slower_GBps(c.combine_GBps, combine_GBps_);
    if (everything_) return c;
    // A rank sends and receives at the same time.
    c.overhead_ns = kept_.handling ? std::max(c.overhead_ns, c.receive_overhead_ns) : 0;
    c.receive_overhead_ns = 0;
    if (!kept_.memory) c.combine_GBps = c.copy_GBps = 0;
    return c;
  }

 private:
  bool keeps(const Link& link) const {
    switch (kept_.links) {
      case Kept::Links::none: return false;
      case Kept::Links::all: return true;
      case Kept::Links::inside: return inside_nodes(link) && link.bandwidth_GBps == kept_.bandwidth_GBps;
      case Kept::Links::network: return !inside_nodes(link);
    }
    return false;
  }

  std::shared_ptr<const Cluster> whole_;
  const Links& links_;
  Protocol::Way inside_, network_;
  double combine_GBps_;
  bool everything_ = true;
  Kept kept_;
};

}  // namespace gccl
