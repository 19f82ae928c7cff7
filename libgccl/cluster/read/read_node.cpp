// From one element of "nodes" in a cluster description to a NodeType.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "libgccl/cluster/node_type.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {
namespace {

using json::Node;

constexpr std::int64_t kCardsPerNodeMax = 1024, kNicsPerNodeMax = 1024, kSwitchesPerNodeMax = 1024;
// Bounds the work of NodeRoutes: every target looks at every link.
constexpr std::uint64_t kRouteWorkMax = 1ull << 27;

// Builds the inside of a node interconnect by interconnect.
class Inside {
 public:
  Inside(NodeType& type, const Parameters& parameters) : type_(type), graph_(type.graph), parameters_(parameters) {}

  void add(const Node& v) {
    static constexpr std::string_view kKinds[] = {"none", "switch", "full_mesh", "ring", "pcie_tree", "links"};
    const std::size_t kind = v.at("kind").one_of(kKinds);
    const std::string_view name = kKinds[kind];
    if (kind != 0) type_.inside += (type_.inside.empty() ? "" : " + ") + std::string(name);
    switch (kind) {
      case 0: v.allow({"kind"}); break;
      case 1: add_switch(v); break;
      case 2: add_full_mesh(v); break;
      case 3: add_ring(v); break;
      case 4: add_pcie_tree(v); break;
      case 5: add_links(v); break;
    }
  }

  // The PCIe switch above each card; empty without a PCIe tree.
  const std::vector<Vertex>& pcie() const { return pcie_; }

  // Refuses switches that reduce where cards reach each other by another way. Routes are those of the whole graph.
  void check_reducing() const {
    std::vector<LinkId> way;
    for (const auto& [value, hub] : reducing_)
      for (Vertex a = 0; a < graph_.cards; ++a)
        for (Vertex b = 0; b < graph_.cards; ++b) {
          if (a == b) continue;
          way.clear();
          type_.routes.append(a, b, 0, way);
          if (way.size() == 2 && graph_.edges[way[0]].to == hub) continue;
          const std::string over = way.size() == 1 ? "directly" : "over " + graph_.vertex_name(graph_.edges[way[0]].to);
          value.fail(fmt::format("card {} sends to card {} {}, expected all cards to send to each other over {}", a, b,
                                 over, graph_.vertex_name(hub)));
        }
  }

  void check_work(const Node& v, std::uint64_t more) const {
    if ((graph_.edges.size() + more) * (graph_.cards + graph_.nics) > kRouteWorkMax)
      v.fail(fmt::format("has {} links for {} cards and NICs, more than routes can be computed for",
                         graph_.edges.size() + more, graph_.cards + graph_.nics));
  }

 private:
  void add_switch(const Node& v) {
    v.allow({"kind", "link", "in_switch"});
    const LinkKind link = read_link(v.at("link"), parameters_).at(Tier::card);
    const Vertex hub = graph_.add_switch(unused_name("switch"));
    if (const auto in_switch = v.find("in_switch"); in_switch && in_switch->boolean()) {
      type_.in_switch = parameters_.in_switch_efficiency;
      reducing_.emplace_back(*in_switch, hub);
    }
    for (Vertex c = 0; c < graph_.cards; ++c) graph_.connect(c, hub, link);
  }

  void add_full_mesh(const Node& v) {
    v.allow({"kind", "link"});
    const LinkKind link = read_link(v.at("link"), parameters_).at(Tier::card);
    check_work(v, std::uint64_t(graph_.cards) * graph_.cards);
    for (Vertex a = 0; a < graph_.cards; ++a)
      for (Vertex b = a + 1; b < graph_.cards; ++b) graph_.connect(a, b, link);
  }

  void add_ring(const Node& v) {
    v.allow({"kind", "link"});
    const LinkKind link = read_link(v.at("link"), parameters_).at(Tier::card);
    const unsigned n = graph_.cards;
    for (Vertex c = 0; c + 1 < n; ++c) graph_.connect(c, c + 1, link);
    if (n > 2) graph_.connect(n - 1, 0, link);
  }

  // Cards below switches, switches below root complexes. These are joined pairwise, or each switch has a way of its own
  // to those of other root complexes.
  void add_pcie_tree(const Node& v) {
    v.allow({"kind", "cards_per_switch", "switches_per_root", "card_link", "switch_link", "root_link", "across_link"});
    if (const auto way = v.find("across_link"); way && v.find("root_link"))
      way->fail("together with \"root_link\", expected one of the two");
    if (!pcie_.empty()) v.fail("a second PCIe tree in one node, expected at most one");
    const auto per_switch = unsigned(v.at("cards_per_switch").integer(1, kCardsPerNodeMax));
    const auto per_root = unsigned(v.at("switches_per_root").integer(1, kCardsPerNodeMax));
    const LinkKind card = read_link(v.at("card_link"), parameters_).at(Tier::node);
    const LinkKind up = read_link(v.at("switch_link"), parameters_).at(Tier::node);
    std::vector<Vertex> switches, roots;
    for (Vertex c = 0; c < graph_.cards; ++c) {
      if (c % per_switch == 0) switches.push_back(graph_.add_switch(fmt::format("pcie{}", switches.size())));
      pcie_.push_back(switches.back());
      graph_.connect(c, switches.back(), card);
    }
    for (std::size_t s = 0; s < switches.size(); ++s) {
      if (s % per_root == 0) roots.push_back(graph_.add_switch(fmt::format("root{}", roots.size())));
      graph_.connect(switches[s], roots.back(), up);
    }
    const auto way = v.find("across_link");
    if (roots.size() < 2) {
      if (const auto link = way ? way : v.find("root_link")) read_link(*link, parameters_);
      return;
    }
    if (way) {
      const LinkKind across = read_link(*way, parameters_).at(Tier::node);
      // Routes take the widest of the shortest ways: cards below one root complex would take this one.
      if (std::max(across.forward.bandwidth_GBps, across.reverse.bandwidth_GBps) >= up.narrower_GBps())
        way->fail("is as wide as \"switch_link\" or wider, expected a narrower link; \"root_link\" has no such limit");
      const Vertex between = graph_.add_switch(unused_name("across"));
      for (const Vertex s : switches) graph_.connect(s, between, across);
      return;
    }
    if (!v.find("root_link")) v.fail("has several root complexes, expected \"root_link\" or \"across_link\"");
    const LinkKind across = read_link(v.at("root_link"), parameters_).at(Tier::node);
    check_work(v, std::uint64_t(roots.size()) * roots.size());
    for (std::size_t a = 0; a < roots.size(); ++a)
      for (std::size_t b = a + 1; b < roots.size(); ++b) graph_.connect(roots[a], roots[b], across);
  }

  void add_links(const Node& v) {
    v.allow({"kind", "switches", "links"});
    std::vector<std::string> names;
    std::unordered_map<std::string, Vertex> known;
    for (unsigned c = 0; c < graph_.cards; ++c) known[fmt::format("card{}", c)] = c;
    for (unsigned i = 0; i < graph_.nics; ++i) known[fmt::format("nic{}", i)] = graph_.nic(i);
    if (const auto switches = v.find("switches"))
      for (const Node& s : switches->items(0, kSwitchesPerNodeMax)) {
        const std::string name = read_switch_name(s);
        if (name.empty() || name != unused_name(name) || known.contains(name))
          s.fail(fmt::format("the name \"{}\" is taken or empty, expected one of its own", name));
        known[name] = graph_.add_switch(name);
      }
    const auto end = [&](const Node& e) {
      const std::string name = e.string();
      if (const auto it = known.find(name); it != known.end()) return it->second;
      std::vector<std::string_view> all;
      for (const auto& [k, vertex] : known) all.push_back(k);
      std::sort(all.begin(), all.end());
      e.fail(fmt::format("the node has no \"{}\"{}", name, suggestion(name, all)));
    };
    for (const Node& l : v.at("links").items(1, 1u << 20)) {
      l.allow({"from", "to", "link"});
      const Vertex a = end(l.at("from")), b = end(l.at("to"));
      if (a == b) l.fail("links a thing to itself");
      const bool bus = is_nic(a) || is_nic(b), direct = a < graph_.cards || b < graph_.cards;
      graph_.connect(a, b, read_link(l.at("link"), parameters_).at(bus ? Tier::nic : direct ? Tier::card : Tier::node));
    }
    check_work(v, 0);
  }

  bool is_nic(Vertex v) const { return v >= graph_.cards && v < graph_.cards + graph_.nics; }

  std::string unused_name(const std::string& wanted) const {
    std::string name = wanted;
    for (unsigned i = 1; std::count(graph_.switches.begin(), graph_.switches.end(), name); ++i)
      name = fmt::format("{}{}", wanted, i);
    return name;
  }

  NodeType& type_;
  NodeGraph& graph_;
  const Parameters& parameters_;
  std::vector<Vertex> pcie_;
  std::vector<std::pair<Node, Vertex>> reducing_;  // switches, and where they were asked to reduce
};

// serves[nic]: the cards that use it. By default neighbours share: card c of n uses NICs c*m/n .., or NIC i serves
// cards i*n/m ...
std::vector<std::vector<unsigned>> read_affinity(const std::optional<Node>& v, unsigned cards, unsigned nics) {
  std::vector<std::vector<unsigned>> serves(nics);
  if (!v) {
    for (unsigned i = 0; i < nics; ++i) {
      if (nics >= cards) {
        serves[i].push_back(unsigned(std::uint64_t(i) * cards / nics));
      } else {
        for (auto c = unsigned((std::uint64_t(i) * cards + nics - 1) / nics);
             std::uint64_t(c) * nics / cards == i && c < cards; ++c)
          serves[i].push_back(c);
      }
    }
    return serves;
  }
  const auto lists = v->items(nics, nics);
  for (unsigned i = 0; i < nics; ++i)
    for (const Node& c : lists[i].items(0, cards)) {
      const auto card = unsigned(c.integer(0, std::int64_t(cards) - 1));
      if (std::count(serves[i].begin(), serves[i].end(), card)) c.fail(fmt::format("card {} twice for one NIC", card));
      serves[i].push_back(card);
    }
  return serves;
}

void read_nics(const Node& v, NodeType& type, const Parameters& p, const Inside& inside,
               const std::vector<std::vector<unsigned>>& serves) {
  NodeGraph& g = type.graph;
  type.ports.assign(g.nics, read_link(v.at("port"), p).at(Tier::leaf));
  const auto bus = v.find("bus");
  std::vector<bool> linked(g.vertices(), false);
  for (const auto& e : g.edges) linked[e.from] = true;
  std::uint64_t buses = 0;
  for (unsigned i = 0; i < g.nics; ++i)
    if (!linked[g.nic(i)]) buses += inside.pcie().empty() ? 2 * serves[i].size() : 2;
  inside.check_work(v, buses);
  for (unsigned i = 0; i < g.nics; ++i) {
    if (linked[g.nic(i)]) continue;  // the explicit links say where it hangs
    if (!bus) v.fail(fmt::format("\"bus\" is missing: NIC {} has no link inside the node", i));
    const LinkKind kind = read_link(*bus, p).at(Tier::nic);
    if (inside.pcie().empty()) {
      if (serves[i].empty()) v.fail(fmt::format("NIC {} serves no card and hangs below no PCIe switch", i));
      for (const unsigned c : serves[i]) g.connect(c, g.nic(i), kind);
    } else {
      g.connect(inside.pcie()[serves[i].empty() ? i % g.cards : serves[i].front()], g.nic(i), kind);
    }
  }
}

// A card without a NIC of its own takes the nearest; where several are equally near, neighbours take turns.
void assign_nics(NodeType& type, const std::vector<std::vector<unsigned>>& serves) {
  const NodeGraph& g = type.graph;
  type.own.assign(g.cards, {});
  for (unsigned i = 0; i < g.nics; ++i)
    for (const unsigned c : serves[i])
      if (type.routes.reaches(c, g.nic(i))) type.own[c].push_back(i);
  for (unsigned c = 0; c < g.cards; ++c) {
    if (!type.own[c].empty()) continue;
    unsigned best = ~0u;
    std::vector<unsigned> nearest;
    for (unsigned i = 0; i < g.nics; ++i) {
      const unsigned d = type.routes.distance(c, g.nic(i));
      if (d < best) best = d, nearest.clear();
      if (d == best && d != ~0u) nearest.push_back(i);
    }
    if (!nearest.empty()) type.own[c] = {nearest[c % nearest.size()]};
  }
}

}  // namespace

std::string read_switch_name(const Node& v) {
  std::string name = v.string();
  constexpr std::string_view kNode = "node";
  const std::size_t rest = name.find_first_not_of("0123456789", kNode.size());
  const bool of_node = name.starts_with(kNode) && rest > kNode.size() && rest < name.size() && name[rest] == '/';
  if (of_node || name.find("->") != std::string::npos)
    v.fail(fmt::format(
        "found \"{}\", expected a name without \"->\" that does not begin with a node's, such as \"node3/\"", name));
  return name;
}

NodeType read_node(const Node& v, const Parameters& defaults, bool bare) {
  v.allow({"count", "cards", "hosts", "parameters", "card", "inside", "nics"});
  NodeType type;
  type.graph.cards = unsigned(v.at("cards").integer(1, kCardsPerNodeMax));
  if (const auto hosts = v.find("hosts")) {
    type.hosts = unsigned(hosts->integer(1, type.graph.cards));
    if (type.graph.cards % type.hosts != 0)
      hosts->fail(fmt::format("found {}, expected a number that divides the {} cards", type.hosts, type.graph.cards));
  }
  std::optional<Parameters> own;
  if (const auto p = v.find("parameters")) own = read_parameters(*p);
  const Parameters& parameters = own ? *own : defaults;
  type.costs = parameters.card;
  if (const auto card = v.find("card")) read_card(*card, type.costs);

  const auto nics = v.find("nics");
  const auto inside_value = v.find("inside");
  if (bare) {
    if (nics) nics->fail("the cards are the torus's routers and have no NICs");
    if (inside_value) inside_value->fail("the cards are the torus's routers and have no other links");
    type.graph.nics = 0;
    type.own.assign(type.graph.cards, {});
    return type;
  }
  std::vector<std::vector<unsigned>> serves;
  if (nics) {
    nics->allow({"count", "cards", "bus", "port"});
    type.graph.nics = unsigned(nics->at("count").integer(1, kNicsPerNodeMax));
    serves = read_affinity(nics->find("cards"), type.graph.cards, type.graph.nics);
  }
  Inside inside(type, parameters);
  if (inside_value) {
    if (inside_value->is_array()) {
      for (const Node& one : inside_value->items(0, 16)) inside.add(one);
    } else {
      inside.add(*inside_value);
    }
  }
  if (nics) read_nics(*nics, type, parameters, inside, serves);
  type.routes = NodeRoutes(type.graph);
  assign_nics(type, serves);
  inside.check_reducing();
  for (const auto& e : type.graph.edges)
    if (e.from == 0 && e.link.tier == Tier::card) type.card_GBps += e.link.bandwidth_GBps;
  if (nics)
    for (unsigned c = 0; c < type.graph.cards; ++c)
      if (type.own[c].empty()) nics->fail(fmt::format("card {} has no way to any NIC", c));
  return type;
}

}  // namespace gccl
