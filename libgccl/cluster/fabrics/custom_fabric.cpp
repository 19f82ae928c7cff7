#include "libgccl/cluster/fabrics/custom_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/cluster/fabrics/fabric_kind.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {
CustomFabric::CustomFabric(CustomShape shape) : shape_(std::move(shape)) {
  const std::size_t n = shape_.switches.size();
  begin_.assign(n + 1, 0);
  for (const auto& c : shape_.cables) {
    add_cable(c.kind);
    ++begin_[c.a + 1];
    ++begin_[c.b + 1];
  }
  for (std::size_t s = 0; s < n; ++s) begin_[s + 1] += begin_[s];
  out_.resize(links_.size());
  auto place = begin_;
  for (std::size_t i = 0; i < shape_.cables.size(); ++i) {
    const auto& c = shape_.cables[i];
    out_[place[c.a]++] = {c.b, LinkId(2 * i)};
    out_[place[c.b]++] = {c.a, LinkId(2 * i + 1)};
  }

  std::vector<bool> has_ports(n, false);
  for (const std::uint32_t s : shape_.switch_of_port) has_ports[s] = true;
  for (std::uint32_t s = 0, before = 0; s < n; before += has_ports[s++]) number_.push_back(before);

  // Cables lead both ways, so distances from a switch are distances to it.
  row_.assign(n, ~0u);
  std::uint32_t rows = 0;
  std::vector<std::uint32_t> queue;
  for (const std::uint32_t target : shape_.switch_of_port) {
    if (row_[target] != ~0u) continue;
    row_[target] = rows++;
    distance_.resize(std::size_t(rows) * n, kFar);
    std::uint16_t* d = &distance_[std::size_t(row_[target]) * n];
    d[target] = 0;
    queue.assign(1, target);
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (std::uint32_t o = begin_[queue[i]]; o < begin_[queue[i] + 1]; ++o)
        if (d[out_[o].to] == kFar) {
          d[out_[o].to] = std::uint16_t(d[queue[i]] + 1);
          queue.push_back(out_[o].to);
        }
  }
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> CustomFabric::unconnected() const {
  if (shape_.switch_of_port.empty()) return std::nullopt;
  const std::uint32_t first = shape_.switch_of_port.front();
  const std::uint16_t* d = &distance_[std::size_t(row_[first]) * shape_.switches.size()];
  for (const std::uint32_t s : shape_.switch_of_port)
    if (d[s] == kFar) return std::pair(first, s);
  return std::nullopt;
}

void CustomFabric::route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const {
  std::uint32_t at = shape_.switch_of_port[from];
  const std::uint32_t end = shape_.switch_of_port[to];
  const std::uint16_t* d = &distance_[std::size_t(row_[end]) * shape_.switches.size()];
  std::uint64_t key = shape_.hash ? splitmix::hash(std::uint64_t(from) << 32 | to) : to;
  while (at != end) {
    const auto nearer = [&](const Out& o) { return d[o.to] + 1 == d[at]; };
    const Out* const first = &out_[begin_[at]];
    const Out* const last = first + (begin_[at + 1] - begin_[at]);
    const auto ways = std::uint64_t(std::count_if(first, last, nearer));
    std::uint64_t skip = key % ways;
    key /= ways;  // else the next switch would choose alike, and some of its ways would stay idle
    const Out* o = std::find_if(first, last, nearer);
    for (; skip > 0; --skip) o = std::find_if(o + 1, last, nearer);
    out.push_back(base + o->link);
    at = o->to;
  }
}

std::string CustomFabric::link_name(LinkId link) const {
  const auto& c = shape_.cables[link / 2];
  const std::string &a = shape_.switches[c.a], &b = shape_.switches[c.b];
  return link & 1 ? b + "->" + a : a + "->" + b;
}

// Layers by how far the nearest port is; switches without a way to one are the last.
std::vector<Bundle::End> CustomFabric::places() const {
  const std::size_t n = shape_.switches.size();
  std::vector<std::uint16_t> depth(n, kFar);
  for (std::size_t i = 0; i < distance_.size(); ++i) depth[i % n] = std::min(depth[i % n], distance_[i]);
  std::uint16_t last = 0;
  for (const std::uint16_t d : depth)
    if (d != kFar) last = std::max(last, d);
  std::vector<std::size_t> count(last + 2u, 0);
  std::vector<Bundle::End> all;
  for (const std::uint16_t d : depth) {
    const std::size_t layer = d == kFar ? last + 1u : d;
    all.push_back({layer, count[layer]++});
  }
  return all;
}

std::vector<Layer> CustomFabric::layers() const {
  const auto at = places();
  std::vector<Layer> all;
  for (std::size_t s = 0; s < at.size(); ++s) {
    while (all.size() <= at[s].layer) all.push_back({all.empty() ? "switch with NICs" : "inner switch", 0, {}, {}});
    ++all[at[s].layer].count;
    all[at[s].layer].names.push_back(shape_.switches[s]);
  }
  return all;
}

std::vector<Bundle> CustomFabric::bundles() const {
  const auto at = places();
  std::map<std::tuple<std::uint32_t, std::uint32_t, Tier>, std::size_t> cables;
  for (const auto& c : shape_.cables) ++cables[{std::min(c.a, c.b), std::max(c.a, c.b), c.kind.forward.tier}];
  std::vector<Bundle> all;
  for (const auto& [ends, count] : cables) {
    const auto& [a, b, tier] = ends;
    all.push_back({at[a], at[b], count, tier});
  }
  return all;
}

bool CustomFabric::layered() const {
  const auto at = places();
  return std::all_of(shape_.cables.begin(), shape_.cables.end(),
                     [&](const auto& c) { return at[c.a].layer != at[c.b].layer; });
}

std::string CustomFabric::describe() const {
  return fmt::format("custom fabric: {} switches, {} cables, {}", shape_.switches.size(), shape_.cables.size(),
                     shape_.hash ? "ways by hash of source and destination" : "ways by destination (d-mod-k)");
}

namespace {

constexpr std::int64_t kSwitchesMax = 4096, kCablesMax = 1 << 20;

class CustomReader {
 public:
  CustomReader(const json::Node& v, const Parameters& p, Composition& c) : v_(v), parameters_(p), c_(c) {}

  void read() {
    v_.allow({"kind", "switches", "links", "ports", "routing"});
    for (const json::Node& s : v_.at("switches").items(1, std::size_t(kSwitchesMax))) {
      const std::string name = read_switch_name(s);
      if (name.empty() || !number_.try_emplace(name, std::uint32_t(shape_.switches.size())).second)
        s.fail(fmt::format("the name \"{}\" is taken or empty, expected one of its own", name));
      shape_.switches.push_back(name);
    }
    if (const auto routing = v_.find("routing")) {
      static constexpr std::string_view kRouting[] = {"d_mod_k", "hash"};
      shape_.hash = routing->one_of(kRouting) == 1;
    }
    if (const auto links = v_.find("links"))
      for (const json::Node& l : links->items(0, std::size_t(kCablesMax))) add_cables(l);
    plug_in_order(c_);
    shape_.switch_of_port.assign(c_.port_of_nic.size(), ~0u);
    first_nic_.push_back(0);
    for (std::size_t n = 0; n < c_.type_of_node.size(); ++n)
      first_nic_.push_back(first_nic_[n] + node_type(c_, n).graph.nics);
    for (const json::Node& p : v_.at("ports").items(1, std::size_t(kCablesMax))) plug(p);
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
  std::uint32_t switch_named(const json::Node& v) const {
    const std::string name = v.string();
    if (const auto it = number_.find(name); it != number_.end()) return it->second;
    const std::vector<std::string_view> names(shape_.switches.begin(), shape_.switches.end());
    v.fail(fmt::format("there is no switch \"{}\"{}", name, suggestion(name, names)));
  }

  void add_cables(const json::Node& l) {
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

  void plug(const json::Node& p) {
    p.allow({"switch", "nodes", "nics"});
    const std::uint32_t s = switch_named(p.at("switch"));
    const auto [first, last] = range(p.at("nodes"), std::int64_t(c_.type_of_node.size()) - 1);
    for (std::int64_t n = first; n <= last; ++n) {
      const std::int64_t nics = node_type(c_, std::size_t(n)).graph.nics;
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

  static std::pair<std::int64_t, std::int64_t> range(const json::Node& v, std::int64_t most) {
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

  const json::Node& v_;
  const Parameters& parameters_;
  Composition& c_;
  CustomShape shape_;
  std::map<std::string, std::uint32_t, std::less<>> number_;
  std::vector<std::uint64_t> first_nic_;
};

void read_custom(const json::Node& v, const Parameters& p, Composition& c) { CustomReader(v, p, c).read(); }

}  // namespace

extern const FabricKind custom_fabric{.name = "custom", .read = read_custom};

}  // namespace gccl
