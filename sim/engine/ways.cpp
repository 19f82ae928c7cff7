#include "sim/engine/ways.hpp"

#include <algorithm>
#include <utility>

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
  find_(from, to, &found_);
  Way& way = ways_[i];
  way.to = to;
  way.length = std::uint32_t(found_.links.size());
  way.narrowest = found_.narrowest;
  way.users = 1;
  way.latency = found_.latency;
  if (way.length > Way::kInline) way.far = std::make_unique_for_overwrite<std::uint32_t[]>(way.length);
  std::ranges::copy(found_.links, way.length > Way::kInline ? way.far.get() : way.near);
  return i;
}

void Ways::find_anew() {
  for (std::uint32_t& last : last_)
    if (last != kNone) release(std::exchange(last, kNone));
}

}  // namespace gccl::sim
