// From "fabric" in a cluster description to a Fabric and the place of every NIC on it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "libgccl/cluster/crossbar.hpp"
#include "libgccl/cluster/custom_fabric.hpp"
#include "libgccl/cluster/dragonfly.hpp"
#include "libgccl/cluster/fat_tree.hpp"
#include "libgccl/cluster/load.hpp"
#include "libgccl/cluster/torus.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {
namespace {

using json::Node;

constexpr std::int64_t kSwitchPortsMax = 1 << 16, kSwitchesMax = 4096, kCablesMax = 1 << 20, kDimensionsMax = 6;
constexpr std::int64_t kPlanesMax = 1024;

const NodeType& type_of(const Composition& c, std::size_t node) { return c.types[c.type_of_node[node]]; }

std::uint64_t nics_of(const Composition& c) {
  std::uint64_t nics = 0;
  for (const auto t : c.type_of_node) nics += c.types[t].graph.nics;
  return nics;
}

unsigned most_nics(const Composition& c) {
  unsigned most = 0;
  for (const auto& t : c.types) most = std::max(most, t.graph.nics);
  return most;
}

void check_links(const Node& v, double links) {
  if (links > double(kLinksMax)) v.fail(fmt::format("makes {:.0f} links, expected at most {}", links, kLinksMax));
}

// NICs plugged in in order.
void plug_in_order(Composition& c) {
  c.port_of_nic.resize(nics_of(c));
  std::iota(c.port_of_nic.begin(), c.port_of_nic.end(), 0);
}

FatTreeShape read_tree(const Node& v, const Parameters& p) {
  FatTreeShape s;
  const auto levels = v.find("levels") ? v.at("levels").integer(2, 3) : 2;
  const auto radix = v.find("radix"), leaf_size = v.find("leaf_size");
  if (bool(radix) == bool(leaf_size)) v.fail("expected either \"radix\" or \"leaf_size\"");
  const auto taper = [&](std::string_view key, std::uint32_t down) {
    const double over = v.find(key) ? v.at(key).number(1, double(kSwitchPortsMax)) : 1;
    return std::max<std::uint32_t>(1, std::uint32_t(std::lround(down / over)));
  };
  s.leaf_size = std::uint32_t(leaf_size ? leaf_size->integer(1, kSwitchPortsMax) : 0);
  if (radix) {  // ports are shared out between down and up in the ratio of oversubscription to 1
    const auto ports = std::uint32_t(radix->integer(2, kSwitchPortsMax));
    const double over = v.find("oversubscription") ? v.at("oversubscription").number(1, double(kSwitchPortsMax)) : 1;
    s.leaf_size = std::clamp<std::uint32_t>(std::uint32_t(std::lround(ports * over / (1 + over))), 1, ports - 1);
    s.uplinks = ports - s.leaf_size;
  } else {
    s.uplinks = taper("oversubscription", s.leaf_size);
  }
  s.spine = s.core = read_link(v.at("link"), p);
  if (levels == 3) {
    const auto pod = v.find("pod_leaves");
    s.pod_leaves = std::uint32_t(pod ? pod->integer(1, kSwitchPortsMax)
                                     : (radix ? radix->integer(2, kSwitchPortsMax) / 2 : s.leaf_size));
    s.core_uplinks = taper("core_oversubscription", s.pod_leaves);
    if (const auto core = v.find("core_link")) s.core = read_link(*core, p);
  } else {
    for (const std::string_view key : {"pod_leaves", "core_oversubscription", "core_link"})
      if (const auto found = v.find(key)) found->fail("is for three levels, and this tree has two");
  }
  return s;
}

// `ports` may leave leaves partly empty; each tree has `ports_per_tree`.
std::unique_ptr<Fabric> tree(const Node& v, const FatTreeShape& s, std::uint64_t ports, std::uint64_t ports_per_tree) {
  if (ports > ~FabricPort(0)) v.fail(fmt::format("makes {} ports, expected at most {}", ports, ~FabricPort(0)));
  const double leaves = std::ceil(double(ports) / s.leaf_size);
  const double pods = s.pod_leaves ? std::ceil(leaves / s.pod_leaves) : 0;
  check_links(v, 2 * leaves * s.uplinks + 2 * pods * s.uplinks * s.core_uplinks);
  return std::make_unique<FatTree>(s, ports, ports_per_tree);
}

std::uint64_t rounded_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

void read_fat_tree(const Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "levels", "radix", "leaf_size", "oversubscription", "pod_leaves", "core_oversubscription", "link",
           "core_link"});
  plug_in_order(c);
  const std::uint64_t ports = c.port_of_nic.size();
  c.fabric = tree(v, read_tree(v, p), ports, ports);
}

// NIC i of every node is on rail i % rails. Each rail of consecutive nodes has leaves of its own; where a node has more
// NICs than there are rails, its NICs of one rail are neighbours on the rail's leaf.
void read_rail(const Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "rails", "cross_rail", "levels", "radix", "leaf_size", "oversubscription", "pod_leaves",
           "core_oversubscription", "link", "core_link"});
  FatTreeShape s = read_tree(v, p);
  const auto given = v.find("rails");
  const auto rails = unsigned(given ? given->integer(1, kPlanesMax) : most_nics(c));
  c.planes.count = rails;
  s.arrangement = fmt::format("{} rails on a ", rails);
  c.planes.cross_in_node = true;
  if (const auto cross = v.find("cross_rail")) {
    static constexpr std::string_view kWays[] = {"node", "fabric"};
    c.planes.cross_in_node = cross->one_of(kWays) == 0;
  }
  const std::uint64_t per_node = (most_nics(c) + rails - 1) / rails;
  const std::uint64_t ports = rounded_up(c.type_of_node.size() * per_node, s.leaf_size) * rails;
  auto fabric = tree(v, s, ports, ports);
  for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
    for (unsigned i = 0; i < type_of(c, n).graph.nics; ++i) {
      const std::uint64_t place = n * per_node + i / rails;
      c.port_of_nic.push_back(
          FabricPort((place / s.leaf_size * rails + i % rails) * s.leaf_size + place % s.leaf_size));
    }
  c.fabric = std::move(fabric);
}

// Plane i is a fat tree of its own for NIC i of every node.
void read_multi_plane(const Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "planes", "levels", "radix", "leaf_size", "oversubscription", "pod_leaves", "core_oversubscription",
           "link", "core_link"});
  FatTreeShape s = read_tree(v, p);
  const auto planes = unsigned(v.at("planes").integer(1, kPlanesMax));
  s.arrangement = fmt::format("{} planes, each a ", planes);
  c.planes = {.count = planes, .cross_in_node = true, .separate = true};
  std::vector<std::uint64_t> taken(planes, 0), place;
  for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
    for (unsigned i = 0; i < type_of(c, n).graph.nics; ++i) place.push_back(taken[i % planes]++);
  const std::uint64_t each = rounded_up(*std::max_element(taken.begin(), taken.end()), s.pod_size());
  auto fabric = tree(v, s, each * planes, each);
  auto at = place.begin();
  for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
    for (unsigned i = 0; i < type_of(c, n).graph.nics; ++i)
      c.port_of_nic.push_back(FabricPort(i % planes * each + *at++));
  c.fabric = std::move(fabric);
}

void read_dragonfly(const Node& v, const Parameters& p, Composition& c, bool plus) {
  if (plus) {
    v.allow({"kind", "leaves", "spines", "ports", "groups", "global_links", "local_link", "global_link"});
  } else {
    v.allow({"kind", "routers", "ports", "groups", "global_links", "local_link", "global_link"});
  }
  plug_in_order(c);
  DragonflyShape s;
  s.leaves = std::uint32_t(v.at(plus ? "leaves" : "routers").integer(1, kSwitchPortsMax));
  if (plus) s.spines = std::uint32_t(v.at("spines").integer(1, kSwitchPortsMax));
  s.leaf_ports = std::uint32_t(v.at("ports").integer(1, kSwitchPortsMax));
  s.global_links = std::uint32_t(v.at("global_links").integer(1, kSwitchPortsMax));
  const std::uint64_t per_group = std::uint64_t(s.leaves) * s.leaf_ports, nics = c.port_of_nic.size();
  s.groups = std::uint32_t((nics + per_group - 1) / per_group);
  if (const auto groups = v.find("groups")) {
    const auto given = std::uint32_t(groups->integer(1, kSwitchPortsMax));
    if (given < s.groups)
      groups->fail(fmt::format("found {}, but {} NICs need {} groups of {} ports", given, nics, s.groups, per_group));
    s.groups = given;
  }
  s.local = read_link(v.at("local_link"), p);
  s.global = read_link(v.at("global_link"), p);
  check_links(v, 2.0 * double(s.local_cables()) + 2.0 * double(s.global_cables()));
  c.fabric = std::make_unique<Dragonfly>(s);
}

// The node of every card of a torus: nodes are boxes of `shape`, numbered like the cards.
std::vector<Rank> boxes(const std::vector<std::uint32_t>& dims, const std::vector<std::uint32_t>& shape,
                        std::uint64_t cards) {
  std::vector<Rank> node(cards);
  for (std::uint64_t c = 0; c < cards; ++c) {
    std::uint64_t rest = c, stride = 1, number = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      number += rest % dims[d] / shape[d] * stride;
      stride *= dims[d] / shape[d];
      rest /= dims[d];
    }
    node[c] = Rank(number);
  }
  return node;
}

void read_torus(const Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "of", "dims", "wrap", "node_shape", "link"});
  static constexpr std::string_view kOf[] = {"cards", "nodes"};
  const bool of_cards = v.at("of").one_of(kOf) == 0;
  TorusShape s;
  std::uint64_t routers = 1;
  for (const Node& d : v.at("dims").items(1, kDimensionsMax)) {
    s.dims.push_back(std::uint32_t(d.integer(1, std::int64_t(kCardsMax))));
    routers *= s.dims.back();
    if (routers > kCardsMax) d.fail(fmt::format("makes {} routers, expected at most {}", routers, kCardsMax));
  }
  if (const auto wrap = v.find("wrap")) s.wrap = wrap->boolean();
  s.link = read_link(v.at("link"), p);
  std::uint64_t cards = 0;
  for (const auto t : c.type_of_node) cards += c.types[t].graph.cards;
  const std::uint64_t things = of_cards ? cards : c.type_of_node.size();
  if (routers != things)
    v.at("dims").fail(fmt::format("makes {} routers, but there are {} {}", routers, things, kOf[of_cards ? 0 : 1]));
  check_links(v, double(Torus::link_count(s)));

  const auto shape_value = v.find("node_shape");
  if (!of_cards) {
    if (shape_value) shape_value->fail("is for a torus of cards");
    s.router_ports = std::max(1u, most_nics(c));
    for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
      for (unsigned i = 0; i < type_of(c, n).graph.nics; ++i)
        c.port_of_nic.push_back(FabricPort(n * s.router_ports + i));
    const bool alike = c.types.size() == 1;
    c.grid_columns = alike ? Rank(s.dims[0] * c.types[0].graph.cards) : 0;
    c.fabric = std::make_unique<Torus>(s, Tier::spine);
    return;
  }
  std::vector<std::uint32_t> shape(s.dims.size(), 1);
  shape[0] = c.types[0].graph.cards;
  if (shape_value) {
    const auto sizes = shape_value->items(s.dims.size(), s.dims.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) shape[d] = std::uint32_t(sizes[d].integer(1, s.dims[d]));
  }
  std::uint64_t box = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    box *= shape[d];
    if (s.dims[d] % shape[d])
      v.fail(
          fmt::format("nodes of {} cards in dimension {} do not tile its {} cards; \"node_shape\" says how a node lies "
                      "in the torus",
                      shape[d], d, s.dims[d]));
  }
  for (const NodeType& t : c.types)
    if (t.graph.cards != box)
      v.fail(fmt::format("a node has {} cards, but its shape in the torus holds {}", t.graph.cards, box));
  c.cards_are_ports = true;
  c.node_of_card = boxes(s.dims, shape, cards);
  c.grid_columns = s.dims[0];
  c.fabric = std::make_unique<Torus>(s, Tier::card);
}

class CustomReader {
 public:
  CustomReader(const Node& v, const Parameters& p, Composition& c) : v_(v), parameters_(p), c_(c) {}

  void read() {
    v_.allow({"kind", "switches", "links", "ports", "routing"});
    for (const Node& s : v_.at("switches").items(1, std::size_t(kSwitchesMax))) {
      const std::string name = s.string();
      if (name.empty() || !number_.try_emplace(name, std::uint32_t(shape_.switches.size())).second)
        s.fail(fmt::format("the name \"{}\" is taken or empty, expected one of its own", name));
      shape_.switches.push_back(name);
    }
    if (const auto routing = v_.find("routing")) {
      static constexpr std::string_view kRouting[] = {"d_mod_k", "hash"};
      shape_.hash = routing->one_of(kRouting) == 1;
    }
    if (const auto links = v_.find("links"))
      for (const Node& l : links->items(0, std::size_t(kCablesMax))) add_cables(l);
    plug_in_order(c_);
    shape_.switch_of_port.assign(c_.port_of_nic.size(), ~0u);
    first_nic_.push_back(0);
    for (std::size_t n = 0; n < c_.type_of_node.size(); ++n)
      first_nic_.push_back(first_nic_[n] + type_of(c_, n).graph.nics);
    for (const Node& p : v_.at("ports").items(1, std::size_t(kCablesMax))) plug(p);
    for (std::size_t n = 0; n + 1 < first_nic_.size(); ++n)
      for (std::uint64_t i = first_nic_[n]; i < first_nic_[n + 1]; ++i)
        if (shape_.switch_of_port[i] == ~0u)
          v_.at("ports").fail(fmt::format("NIC {} of node {} is plugged in nowhere", i - first_nic_[n], n));
    auto fabric = std::make_unique<CustomFabric>(shape_);
    if (const auto apart = fabric->unconnected())
      v_.fail(fmt::format("no way from node {} to node {}: switches \"{}\" and \"{}\" are not connected",
                          a_node_at(apart->first), a_node_at(apart->second), shape_.switches[apart->first],
                          shape_.switches[apart->second]));
    c_.fabric = std::move(fabric);
  }

 private:
  std::uint32_t switch_named(const Node& v) const {
    const std::string name = v.string();
    if (const auto it = number_.find(name); it != number_.end()) return it->second;
    const std::vector<std::string_view> names(shape_.switches.begin(), shape_.switches.end());
    v.fail(fmt::format("there is no switch \"{}\"{}", name, suggestion(name, names)));
  }

  void add_cables(const Node& l) {
    l.allow({"between", "link", "cables", "tier"});
    const auto ends = l.at("between").items(2, 2);
    const std::uint32_t a = switch_named(ends[0]), b = switch_named(ends[1]);
    if (a == b) l.fail("links a switch to itself");
    static constexpr std::string_view kTiers[] = {"spine", "core", "other"};
    static constexpr Tier kTier[] = {Tier::spine, Tier::core, Tier::other};
    const auto tier = l.find("tier");
    const LinkKind kind = read_link(l.at("link"), parameters_).at(kTier[tier ? tier->one_of(kTiers) : 0]);
    const auto cables = l.find("cables") ? l.at("cables").integer(1, kSwitchPortsMax) : 1;
    if (std::int64_t(shape_.cables.size()) + cables > kCablesMax)
      l.fail(fmt::format("more than {} cables", kCablesMax));
    shape_.cables.insert(shape_.cables.end(), std::size_t(cables), {a, b, kind});
  }

  void plug(const Node& p) {
    p.allow({"switch", "nodes", "nics"});
    const std::uint32_t s = switch_named(p.at("switch"));
    const auto [first, last] = range(p.at("nodes"), std::int64_t(c_.type_of_node.size()) - 1);
    for (std::int64_t n = first; n <= last; ++n) {
      const std::int64_t nics = type_of(c_, std::size_t(n)).graph.nics;
      if (nics == 0) p.fail(fmt::format("node {} has no NIC", n));
      std::pair<std::int64_t, std::int64_t> which{0, nics - 1};
      if (const auto given = p.find("nics")) which = range(*given, nics - 1);
      for (std::int64_t i = which.first; i <= which.second; ++i) {
        auto& place = shape_.switch_of_port[first_nic_[std::size_t(n)] + std::uint64_t(i)];
        if (place != ~0u)
          p.fail(fmt::format("NIC {} of node {} is already plugged into \"{}\"", i, n, shape_.switches[place]));
        place = s;
      }
    }
  }

  static std::pair<std::int64_t, std::int64_t> range(const Node& v, std::int64_t most) {
    const auto ends = v.items(2, 2);
    const std::int64_t first = ends[0].integer(0, most);
    return {first, ends[1].integer(first, most)};
  }

  std::size_t a_node_at(std::uint32_t s) const {
    const auto at =
        std::find(shape_.switch_of_port.begin(), shape_.switch_of_port.end(), s) - shape_.switch_of_port.begin();
    return std::size_t(std::upper_bound(first_nic_.begin(), first_nic_.end(), std::uint64_t(at)) - first_nic_.begin() -
                       1);
  }

  const Node& v_;
  const Parameters& parameters_;
  Composition& c_;
  CustomShape shape_;
  std::map<std::string, std::uint32_t, std::less<>> number_;
  std::vector<std::uint64_t> first_nic_;
};

}  // namespace

void read_fabric(const Node& v, const Parameters& p, Composition& c) {
  static constexpr std::string_view kKinds[] = {"switch",    "fat_tree",       "rail",  "multi_plane",
                                                "dragonfly", "dragonfly_plus", "torus", "custom"};
  const std::size_t kind = v.at("kind").one_of(kKinds);
  if (kKinds[kind] != "torus" && nics_of(c) == 0) v.fail("a fabric, but no node has a NIC");
  switch (kind) {
    case 0:
      v.allow({"kind"});
      plug_in_order(c);
      c.fabric = std::make_unique<Crossbar>();
      break;
    case 1: read_fat_tree(v, p, c); break;
    case 2: read_rail(v, p, c); break;
    case 3: read_multi_plane(v, p, c); break;
    case 4: read_dragonfly(v, p, c, false); break;
    case 5: read_dragonfly(v, p, c, true); break;
    case 6: read_torus(v, p, c); break;
    case 7: CustomReader(v, p, c).read(); break;
  }
}

}  // namespace gccl
