// One kind of node: its cards, NICs and switches, the links between them and the routes inside.
#pragma once

#include <span>

#include "libgccl/cluster/read/parameters.hpp"

namespace gccl {

// The vertices of a node: cards first, then NICs, then switches (NVSwitch, PCIe switches, root complexes).
using Vertex = std::uint32_t;

struct NodeGraph {
  struct Edge {
    Vertex from, to;
    Link link;
  };

  unsigned cards = 0, nics = 0;
  std::vector<std::string> switches;
  std::vector<Edge> edges;

  Vertex nic(unsigned i) const { return cards + i; }
  Vertex add_switch(std::string name) {
    switches.push_back(std::move(name));
    return Vertex(cards + nics + switches.size() - 1);
  }
  void connect(Vertex a, Vertex b, const LinkKind& kind) {
    edges.push_back({a, b, kind.forward});
    edges.push_back({b, a, kind.reverse});
  }
  Vertex vertices() const { return Vertex(cards + nics + switches.size()); }
  std::string vertex_name(Vertex v) const;
};

// Shortest routes inside a node to every card and NIC: fewest links, then least sum of inverse bandwidths, then least
// latency, then the edge added first. Cards and switches pass traffic on; NICs do not.
class NodeRoutes {
 public:
  NodeRoutes() = default;
  explicit NodeRoutes(const NodeGraph& graph);

  bool reaches(Vertex from, Vertex to) const { return from == to || next_[slot(from, to)] != kNone; }
  // Appends base + edge for each edge on the way. Requires reaches(from, to).
  void append(Vertex from, Vertex to, LinkId base, std::vector<LinkId>& out) const {
    while (from != to) {
      const std::uint32_t edge = next_[slot(from, to)];
      out.push_back(base + edge);
      from = head_[edge];
    }
  }
  // Orders destinations by how near they are: fewest links first.
  unsigned distance(Vertex from, Vertex to) const;

 private:
  static constexpr std::uint32_t kNone = ~0u;
  std::size_t slot(Vertex from, Vertex to) const { return std::size_t(to) * vertices_ + from; }

  std::size_t vertices_ = 0;
  std::vector<std::uint32_t> next_;  // next_[to * vertices + from]: first edge on the way
  std::vector<Vertex> head_;         // head_[edge]: where it ends
};

// What every node of one kind shares.
struct NodeType {
  NodeGraph graph;
  NodeRoutes routes;
  CardCosts costs;
  std::vector<LinkKind> ports;             // ports[nic]: to the fabric; forward leaves the node
  std::vector<std::vector<unsigned>> own;  // own[card]: the NICs it uses; several share the load by destination
  unsigned hosts = 1;                      // as Cluster::hosts of the node
  std::string inside;                      // for reports, such as "switch"
  double in_switch = 0;                    // as Cluster::in_switch of the node's cards
  double card_GBps = 0;                    // what leaves a card at once towards the others of its node, for reports

  // The NICs of a plane (NIC i is in plane i % planes) for a card: its own, else its share of the nearest; none where
  // none is within reach.
  std::vector<unsigned> nics_of_plane(unsigned card, unsigned plane, unsigned planes) const;
};

// Reads the name of a switch, of a node or of a custom fabric. Names of links are made of those of their ends, and are
// taken apart again: "->" stands between the two, and what begins with "node3/" is in node 3. Throws json::InputError.
std::string read_switch_name(const json::Node& value);

// Reads one element of "nodes". `defaults` are the cluster's parameters. With `bare` the cards themselves are the
// fabric's routers: the node may have neither inside links nor NICs.
NodeType read_node(const json::Node& value, const Parameters& defaults, bool bare);

}  // namespace gccl
