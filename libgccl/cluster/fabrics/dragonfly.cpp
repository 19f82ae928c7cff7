#include "libgccl/cluster/fabrics/dragonfly.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"

namespace gccl {
namespace {

// The pairs a < b of n things in the order of b: the number of a pair, and back.
std::uint64_t pair_number(std::uint64_t a, std::uint64_t b) { return b * (b - 1) / 2 + a; }
std::pair<std::uint32_t, std::uint32_t> pair_of(std::uint64_t number) {
  std::uint64_t low = 1, high = 1ull << 32;  // the largest b with b(b-1)/2 <= number
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (middle * (middle - 1) / 2 <= number ? low : high) = middle;
  }
  return {std::uint32_t(number - low * (low - 1) / 2), std::uint32_t(low)};
}

}  // namespace

Dragonfly::Dragonfly(const DragonflyShape& shape) : s_(shape) {
  for (std::uint64_t i = 0; i < s_.local_cables(); ++i) add_cable(s_.local.at(Tier::spine));
  global_base_ = LinkId(links_.size());
  for (std::uint64_t i = 0; i < s_.global_cables(); ++i) add_cable(s_.global.at(Tier::core));
}

LinkId Dragonfly::local(std::uint32_t group, std::uint32_t a, std::uint32_t b) const {
  const std::uint64_t per_group = std::uint64_t(s_.leaves) * (s_.leaves - 1) / 2;
  return LinkId(2 * (group * per_group + pair_number(std::min(a, b), std::max(a, b))) + (a > b));
}

LinkId Dragonfly::up(std::uint32_t group, std::uint32_t leaf, std::uint32_t spine) const {
  return LinkId(2 * ((std::uint64_t(group) * s_.leaves + leaf) * s_.spines + spine));
}

LinkId Dragonfly::global(std::uint32_t g, std::uint32_t h, std::uint32_t c) const {
  return LinkId(global_base_ + 2 * (pair_number(std::min(g, h), std::max(g, h)) * s_.global_links + c) + (g > h));
}

std::uint32_t Dragonfly::gateway(std::uint32_t g, std::uint32_t h, std::uint32_t c) const {
  const std::uint64_t cable = std::uint64_t(h < g ? h : h - 1) * s_.global_links + c;
  return std::uint32_t(cable % (s_.spines ? s_.spines : s_.leaves));
}

void Dragonfly::inside(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const {
  const std::uint32_t g = from / s_.leaf_ports / s_.leaves;
  const std::uint32_t leaf = from / s_.leaf_ports % s_.leaves, end = to / s_.leaf_ports % s_.leaves;
  if (s_.spines) {
    out.push_back(base + up(g, leaf, to % s_.spines));
    out.push_back(base + up(g, end, to % s_.spines) + 1);
    return;
  }
  const bool spread = s_.routing != DragonflyRouting::minimal;
  const std::uint32_t over = spread ? (end + from % s_.leaf_ports) % s_.leaves : end;
  if (over != end && over != leaf) {
    out.push_back(base + local(g, leaf, over));
    out.push_back(base + local(g, over, end));
  } else {
    out.push_back(base + local(g, leaf, end));
  }
}

void Dragonfly::cross(std::uint32_t g, std::uint32_t a, std::uint32_t c, std::uint32_t h, std::uint32_t b, LinkId base,
                      std::vector<LinkId>& out) const {
  const std::uint32_t exit = gateway(g, h, c), entry = gateway(h, g, c);
  if (s_.spines) {
    out.push_back(base + up(g, a, exit));
  } else if (a != exit) {
    out.push_back(base + local(g, a, exit));
  }
  out.push_back(base + global(g, h, c));
  if (s_.spines) {
    out.push_back(base + up(h, b, entry) + 1);
  } else if (entry != b) {
    out.push_back(base + local(h, entry, b));
  }
}

void Dragonfly::route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const {
  const std::uint32_t a = from / s_.leaf_ports, b = to / s_.leaf_ports;
  if (a == b) return;
  const std::uint32_t g = a / s_.leaves, h = b / s_.leaves, leaf = a % s_.leaves, end = b % s_.leaves;
  if (g == h) return inside(from, to, base, out);
  if (s_.routing == DragonflyRouting::valiant) {
    const std::uint32_t per_group = s_.leaves * s_.leaf_ports, p = from % per_group, q = to % per_group;
    const auto over = std::uint32_t((p + 2ull * q) % s_.groups);
    if (over != g && over != h) {
      const std::uint32_t first = (p + q) / s_.groups % s_.global_links, second = q / s_.groups % s_.global_links;
      const std::uint32_t middle = s_.spines ? (p + q) / s_.groups % s_.leaves : gateway(over, h, second);
      cross(g, leaf, first, over, middle, base, out);
      cross(over, middle, second, h, end, base, out);
      return;
    }
  }
  cross(g, leaf, to % s_.global_links, h, end, base, out);
}

std::string Dragonfly::link_name(LinkId link) const {
  const bool back = link & 1;
  std::string a, b;
  if (link >= global_base_) {
    const std::uint64_t cable = (link - global_base_) / 2;
    const auto [g, h] = pair_of(cable / s_.global_links);
    const auto c = std::uint32_t(cable % s_.global_links);
    const std::string_view what = s_.spines ? "spine" : "router";
    a = fmt::format("group{}/{}{}", g, what, gateway(g, h, c));
    b = fmt::format("group{}/{}{}", h, what, gateway(h, g, c));
  } else if (s_.spines) {
    const std::uint32_t leaf = link / 2 / s_.spines;
    a = fmt::format("group{}/leaf{}", leaf / s_.leaves, leaf % s_.leaves);
    b = fmt::format("group{}/spine{}", leaf / s_.leaves, link / 2 % s_.spines);
  } else {
    const std::uint64_t per_group = std::uint64_t(s_.leaves) * (s_.leaves - 1) / 2;
    const auto [x, y] = pair_of(link / 2 % per_group);
    a = fmt::format("group{}/router{}", link / 2 / per_group, x);
    b = fmt::format("group{}/router{}", link / 2 / per_group, y);
  }
  return back ? b + "->" + a : a + "->" + b;
}

std::string Dragonfly::switch_of(FabricPort port) const {
  const std::uint32_t r = port / s_.leaf_ports;
  return fmt::format("group{}/{}{}", r / s_.leaves, s_.spines ? "leaf" : "router", r % s_.leaves);
}

std::optional<double> Dragonfly::bisection_GBps() const {
  const auto halves = [](double n) { return std::floor(n / 2) * std::ceil(n / 2); };
  if (s_.groups > 1) return halves(s_.groups) * s_.global_links * s_.global.narrower_GBps();
  if (s_.spines)
    return s_.leaves < 2 ? std::numeric_limits<double>::infinity()
                         : s_.leaves / 2.0 * s_.spines * s_.local.narrower_GBps();
  return s_.leaves < 2 ? std::numeric_limits<double>::infinity() : halves(s_.leaves) * s_.local.narrower_GBps();
}

std::vector<Layer> Dragonfly::layers() const {
  std::vector<Layer> all{{s_.spines ? "leaf" : "router", std::uint64_t(s_.groups) * s_.leaves, {}, {}, s_.leaves}};
  if (s_.spines) {
    all.back().up = Tier::spine;
    all.push_back({"spine", std::uint64_t(s_.groups) * s_.spines, {}, {}, s_.spines});
  } else {
    all.back().across = Tier::spine;
  }
  if (s_.groups > 1) {
    all.back().up = Tier::core;
    all.push_back({"global cables", s_.global_cables(), {}, {}, 0, true});
  }
  return all;
}

std::string Dragonfly::describe() const {
  const std::string_view routes = s_.routing == DragonflyRouting::minimal  ? ""
                                  : s_.routing == DragonflyRouting::spread ? ", spread routes"
                                                                           : ", routes over a third group";
  if (s_.spines)
    return fmt::format(
        "dragonfly+: {} groups of {} leaves and {} spines, {} ports per leaf, {} global links per group pair{}",
        s_.groups, s_.leaves, s_.spines, s_.leaf_ports, s_.global_links, routes);
  return fmt::format("dragonfly: {} groups of {} routers, {} ports per router, {} global links per group pair{}",
                     s_.groups, s_.leaves, s_.leaf_ports, s_.global_links, routes);
}

namespace {

constexpr std::string_view kRouting[] = {"minimal", "spread", "valiant"}, kRoutingPlus[] = {"minimal", "valiant"};

template <bool plus>
void read_dragonfly(const json::Node& v, const Parameters& p, Composition& c) {
  if (plus) {
    v.allow({"kind", "leaves", "spines", "ports", "groups", "global_links", "local_link", "global_link", "routing"});
  } else {
    v.allow({"kind", "routers", "ports", "groups", "global_links", "local_link", "global_link", "routing"});
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
  if (const auto routing = v.find("routing")) {
    if (plus) {
      if (routing->one_of(kRoutingPlus) == 1) s.routing = DragonflyRouting::valiant;
    } else {
      s.routing = DragonflyRouting(routing->one_of(kRouting));
    }
  }
  s.local = read_link(v.at("local_link"), p);
  s.global = read_link(v.at("global_link"), p);
  check_link_count(v, 2.0 * double(s.local_cables()) + 2.0 * double(s.global_cables()));
  c.fabric = std::make_unique<Dragonfly>(s);
}

}  // namespace

extern const FabricKind dragonfly_fabric{.name = "dragonfly", .read = read_dragonfly<false>};
extern const FabricKind dragonfly_plus_fabric{.name = "dragonfly_plus", .read = read_dragonfly<true>};

}  // namespace gccl
