#include "libgccl/cluster/custom_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "libgccl/base/splitmix.hpp"

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

}  // namespace gccl
