// A cluster as the engines see it: cards, directed links, and a route between any two cards, computed on demand.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libgccl/cluster/links.hpp"
#include "libgccl/cost/correction.hpp"
#include "libgccl/cost/cost_model.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl {

struct TransportModel;  // transport_model.hpp
using TransportModels = std::map<std::string, TransportModel, std::less<>>;

using Card = std::uint32_t;

// Costs of a card itself.
struct CardCosts {
  Nanos overhead_ns = 0;          // a rank is busy this long starting one message (LogGP's o of the sender)
  Nanos receive_overhead_ns = 0;  // and this long taking one that has arrived (LogGP's o of the receiver)
  double combine_GBps = 0;        // incoming bytes reduced per ns; 0: free
  double copy_GBps = 0;           // bytes copied per ns; 0: free
};

// Immutable after construction. Sizes: links are O(cards), routes are never stored for all pairs.
class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual std::string_view name() const = 0;
  virtual Card cards() const = 0;
  virtual Rank nodes() const = 0;
  virtual Rank node_of(Card) const = 0;
  virtual const Links& links() const = 0;
  virtual std::string link_name(LinkId) const = 0;
  // Replaces `out` by the links from one card to another, in the order a message meets them; empty when from == to.
  virtual void route(Card from, Card to, std::vector<LinkId>& out) const = 0;
  virtual const CardCosts& costs(Card) const = 0;
  // Messages of more bytes start only once their receive is posted.
  virtual Count eager_bytes() const = 0;
  // Where ranks are processes that GCCL connects by itself: what GCCL_BACKENDS would say. Calls are planned for these
  // transports then; empty: by the cluster's routes alone.
  virtual std::string_view backends() const { return {}; }
  // The models of these transports; those that are compiled in where the description says nothing of them.
  virtual const TransportModels& transports() const;
  // What a call can be carried out by; the planner chooses. One that adds nothing where the description names none.
  virtual const Protocols& protocols() const;
  // What simulated operations take beyond that.
  virtual const Corrections& corrections() const;
  // How many hosts a node is made of, as a rack is of trays that NVLink joins: what measurements count as nodes.
  virtual Rank hosts(Rank) const { return 1; }
  // How the cards of a node are joined, for the orders of channels.
  virtual View::Wiring wiring() const { return View::Wiring::crossbar; }
  // What multicasts and reductions of a switch that joins all of these cards reach of the links' bandwidths; 0 where no
  // switch can do either.
  virtual double in_switch(std::span<const Card>) const { return 0; }
  // Row length of the card grid on a torus, else 0 (see View::columns).
  virtual Rank grid_columns() const = 0;
};

// The layout of ranks on these cards: rank r is on cards[r].
inline Layout layout_of(const Cluster& cluster, const std::vector<Card>& cards) {
  std::vector<Rank> node_of;
  for (const Card c : cards) node_of.push_back(cluster.node_of(c));
  return Layout::of(node_of).wiring(cluster.wiring());
}

}  // namespace gccl
