// Nodes of a few kinds, joined by a fabric: the Cluster behind every cluster description.
#pragma once

#include <optional>

#include "libgccl/cluster/fabrics/fabric.hpp"
#include "libgccl/cluster/node_type.hpp"

namespace gccl {

constexpr std::uint64_t kCardsMax = 1u << 20;
constexpr std::uint64_t kLinksMax = 1u << 26;

// Which NIC of a node leads where. NIC i of a node is in plane i % planes.
struct Planes {
  unsigned count = 1;
  // Sender and receiver use NICs of one plane: the receiver's own NIC says which, and the sender reaches its own node's
  // NIC of that plane over the links inside the node (NCCL's PXN), of several in turn.
  bool cross_in_node = false;
  // Planes are not joined by the fabric, so every pair of cards needs a plane in common.
  bool separate = false;
};

struct Composition {
  std::string name, description;
  Count eager_bytes = 0;
  std::string backends;
  std::shared_ptr<const TransportModels> transports;  // null: those that are compiled in
  NcclSettings nccl;
  std::optional<MpiMemory> mpi;
  Protocols protocols;
  Corrections corrections;
  LibraryChoices choices;
  std::vector<NodeType> types;
  std::vector<std::uint32_t> type_of_node;
  std::unique_ptr<Fabric> fabric;       // null: one node
  std::vector<FabricPort> port_of_nic;  // over all nodes in order; empty when cards_are_ports
  Planes planes;
  // A torus of cards: card c is router c, and node_of_card says which node it belongs to. Else cards are numbered node
  // by node and node_of_card is empty.
  bool cards_are_ports = false;
  std::vector<Rank> node_of_card;
  Rank grid_columns = 0;
};

// A message inside a node goes over the node's own links where there is a way; otherwise through the fabric. Between
// nodes: card, links inside the node to a NIC, the NIC's cable, the fabric, a cable, NIC, links inside the node, card.
// Of several NICs of its own a card uses number (from + to) mod how many it has.
class ComposedCluster final : public Cluster {
 public:
  // Throws std::invalid_argument naming two cards when there is no way between some cards.
  explicit ComposedCluster(Composition parts);

  std::string_view name() const override { return c_.name; }
  Card cards() const override { return Card(node_of_.size()); }
  Rank nodes() const override { return Rank(c_.type_of_node.size()); }
  Rank node_of(Card card) const override { return node_of_[card]; }
  const Links& links() const override { return links_; }
  std::string link_name(LinkId) const override;
  void route(Card from, Card to, std::vector<LinkId>& out) const override;
  const CardCosts& costs(Card card) const override { return type_of(node_of_[card]).costs; }
  Count eager_bytes() const override { return c_.eager_bytes; }
  std::string_view backends() const override { return c_.backends; }
  const TransportModels& transports() const override { return c_.transports ? *c_.transports : Cluster::transports(); }
  double in_switch(std::span<const Card> cards) const override;
  const Protocols& protocols() const override { return c_.protocols; }
  const Corrections& corrections() const override { return c_.corrections; }
  Rank hosts(Rank node) const override { return type_of(node).hosts; }
  View::Wiring wiring() const override { return wiring_; }
  Rank grid_columns() const override { return c_.grid_columns; }

  // For reports.
  const Composition& parts() const { return c_; }
  const NodeType& type_of(Rank node) const { return c_.types[c_.type_of_node[node]]; }
  Card first_card(Rank node) const { return places_[node].card; }
  std::uint64_t nics() const { return c_.port_of_nic.size(); }
  // The number, in the fabric's lowest layer, of the switch that a NIC is plugged into.
  std::uint64_t nic_switch(Rank node, unsigned nic) const {
    return c_.fabric->switch_number(c_.port_of_nic[places_[node].nic + nic]);
  }

 private:
  struct Place {  // where a node's numbers begin
    std::uint32_t card, nic;
    LinkId link;
  };
  // NICs for a message from card a of one kind of node to card b of another; `turn` chooses among several.
  std::pair<unsigned, unsigned> choose(const NodeType& ta, unsigned a, const NodeType& tb, unsigned b,
                                       unsigned turn) const;
  // The NICs over which the cards of one kind of node reach a plane.
  struct Crossing {
    std::vector<std::uint16_t> nics;   // of all cards and planes, one after the other
    std::vector<std::uint32_t> begin;  // [card * planes + plane]: where those begin in `nics`; one more
    std::vector<std::uint16_t> own;    // [card]: planes that its own NICs are on
  };
  Crossing crossing_of(const NodeType& t) const;
  // The NIC over which card a sends to a NIC of that plane, or takes from it; `others`: planes of the other card's own
  // NICs, among which `turn` has chosen already. Nothing where none is within reach.
  std::optional<unsigned> cross(const NodeType& ta, unsigned a, unsigned plane, unsigned others, unsigned turn) const;
  void check_connected() const;

  Composition c_;
  std::vector<Rank> node_of_;
  std::vector<Place> places_;       // one more than nodes
  std::vector<Crossing> crossing_;  // by kind of node
  Links links_;
  LinkId fabric_base_ = 0;
  View::Wiring wiring_ = View::Wiring::unknown;
};

}  // namespace gccl
