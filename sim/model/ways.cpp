#include "sim/model/ways.hpp"

#include <algorithm>

namespace gccl::sim {

std::uint32_t Ways::acquire() {
  if (free_.empty()) {
    ways_.emplace_back();
    return std::uint32_t(ways_.size() - 1);
  }
  const std::uint32_t i = free_.back();
  free_.pop_back();
  return i;
}

std::uint32_t Ways::look_up(Card from, Card to) {
  if (last_[from] != kNone) release(last_[from]);
  const std::uint32_t i = last_[from] = acquire();
  cluster_.route(from, to, route_);
  Way& way = ways_[i];
  way.to = to;
  way.length = std::uint32_t(route_.size());
  way.users = 1;
  way.latency = 0;
  for (const LinkId l : route_) way.latency += cluster_.links()[l].latency_ns;
  if (way.length > 0) way.narrowest = links_.place(narrowest(cluster_, route_));
  if (way.length > Way::kInline) way.far = std::make_unique_for_overwrite<std::uint32_t[]>(way.length);
  std::ranges::transform(route_, way.length > Way::kInline ? way.far.get() : way.near,
                         [&](LinkId l) { return links_.place(l); });
  return i;
}

}  // namespace gccl::sim
