#include "libgccl/cluster/torus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

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
      const double crossings = a.cables == a.size ? 2 : 1;
      narrowest = std::min(narrowest, crossings * (routers_ / a.size) * shape_.link.forward.bandwidth_GBps);
    }
  return narrowest;
}

std::vector<Layer> Torus::layers() const { return {{"router", routers_, {}, tier_}}; }

std::string Torus::describe() const {
  return fmt::format("{} {}", fmt::join(shape_.dims, " x "), shape_.wrap ? "torus" : "mesh");
}

}  // namespace gccl
