#include "libgccl/cluster/fabrics/torus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"

namespace gccl {
namespace {

std::uint32_t cables_of(std::uint32_t size, bool wrap) { return size < 2 ? 0 : size == 2 || !wrap ? size - 1 : size; }

}  // namespace

Torus::Torus(const TorusShape& shape, Tier tier) : shape_(shape), tier_(tier) {
  for (const std::uint32_t d : shape_.dims) routers_ *= d;
  std::uint32_t stride = 1;
  for (const std::uint32_t d : shape_.dims) {
    const Axis axis{d, stride, cables_of(d, shape_.wrap), LinkId(links_.size())};
    for (std::uint64_t i = 0; i < std::uint64_t(routers_ / d) * axis.cables; ++i) add_cable(shape_.link.at(tier));
    axes_.push_back(axis);
    stride *= d;
  }
}

std::uint64_t Torus::link_count(const TorusShape& s) {
  std::uint64_t routers = 1, links = 0;
  for (const std::uint32_t d : s.dims) routers *= d;
  for (const std::uint32_t d : s.dims) links += 2 * (routers / d) * cables_of(d, s.wrap);
  return links;
}

void Torus::route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const {
  std::uint32_t at = from / shape_.router_ports;
  const std::uint32_t target = to / shape_.router_ports;
  if (at == target) return;
  for (const Axis& axis : axes_) {
    std::uint32_t x = at / axis.stride % axis.size;
    const std::uint32_t end = target / axis.stride % axis.size;
    if (x == end) continue;
    const std::uint32_t line = at / (axis.stride * axis.size) * axis.stride + at % axis.stride;
    const LinkId first = base + axis.base + 2 * line * axis.cables;
    const std::uint32_t forward = end > x ? end - x : end + axis.size - x;
    const bool ring = axis.cables == axis.size;
    const bool ahead = ring ? 2 * forward <= axis.size : end > x;
    while (x != end) {
      const std::uint32_t before = x == 0 ? axis.size - 1 : x - 1;
      out.push_back(first + 2 * (ahead ? x : before) + !ahead);
      x = ahead ? (x + 1 == axis.size ? 0 : x + 1) : before;
    }
    // at moves to the target's coordinate in this dimension
    at = at - at / axis.stride % axis.size * axis.stride + end * axis.stride;
  }
}

std::string Torus::router_name(std::uint32_t router) const {
  std::vector<std::uint32_t> at;
  for (const Axis& a : axes_) at.push_back(router / a.stride % a.size);
  return fmt::format("({})", fmt::join(at, ","));
}

std::string Torus::link_name(LinkId link) const {
  const auto axis =
      std::find_if(axes_.rbegin(), axes_.rend(), [&](const Axis& a) { return a.cables && a.base <= link; });
  const std::uint32_t cable = (link - axis->base) / 2, line = cable / axis->cables, x = cable % axis->cables;
  const std::uint32_t origin = line / axis->stride * axis->stride * axis->size + line % axis->stride;
  const std::string a = router_name(origin + x * axis->stride),
                    b = router_name(origin + (x + 1) % axis->size * axis->stride);
  return link & 1 ? b + "->" + a : a + "->" + b;
}

std::string Torus::switch_of(FabricPort port) const { return router_name(port / shape_.router_ports); }

std::optional<double> Torus::bisection_GBps() const {
  double narrowest = std::numeric_limits<double>::infinity();
  for (const Axis& a : axes_)
    if (a.size > 1) {
      // Round a ring one half reaches the other forwards at one end and backwards at the other.
      const LinkKind& link = shape_.link;
      const double across =
          a.cables == a.size ? link.forward.bandwidth_GBps + link.reverse.bandwidth_GBps : link.narrower_GBps();
      narrowest = std::min(narrowest, across * (routers_ / a.size));
    }
  return narrowest;
}

std::vector<Layer> Torus::layers() const { return {{"router", routers_, {}, tier_}}; }

std::string Torus::describe() const {
  return fmt::format("{} {}", fmt::join(shape_.dims, " x "), shape_.wrap ? "torus" : "mesh");
}

namespace {

constexpr std::int64_t kDimensionsMax = 6;

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

bool joins_cards(const json::Node& v) {
  const auto of = v.find("of");
  return of && of->is_string() && of->string() == "cards";
}

void read_torus(const json::Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "of", "dims", "wrap", "node_shape", "link"});
  static constexpr std::string_view kOf[] = {"cards", "nodes"};
  const bool of_cards = v.at("of").one_of(kOf) == 0;
  TorusShape s;
  std::uint64_t routers = 1;
  for (const json::Node& d : v.at("dims").items(1, kDimensionsMax)) {
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
  check_link_count(v, double(Torus::link_count(s)));

  const auto shape_value = v.find("node_shape");
  if (!of_cards) {
    if (shape_value) shape_value->fail("is for a torus of cards");
    s.router_ports = std::max(1u, most_nics(c));
    for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
      for (unsigned i = 0; i < node_type(c, n).graph.nics; ++i)
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

}  // namespace

extern const FabricKind torus_fabric{.name = "torus", .read = read_torus, .joins_cards = joins_cards};

}  // namespace gccl
