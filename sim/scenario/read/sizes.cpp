#include "sim/scenario/read/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gccl::sim {
namespace {

std::vector<Count> range(const json::Node& node) {
  node.allow({"from", "to", "factor"});
  const Count from = node.at("from").bytes(), to = node.at("to").bytes();
  const auto stated = node.find("factor");
  const double factor = stated ? stated->number(1.01, 1e15) : 2;
  if (from == 0) node.at("from").fail("found 0, expected at least 1 byte where a range begins");
  if (to < from) node.at("to").fail(fmt::format("found {}, expected at least \"from\", {}", to, from));
  std::vector<Count> sizes;
  for (double s = double(from); s <= double(to) * (1 + 1e-12); s *= factor) {
    const Count size = std::min<Count>(to, Count(std::llround(s)));
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
    if (sizes.size() > kSizesMax) node.fail(fmt::format("gives more than {} sizes", kSizesMax));
  }
  return sizes;
}

}  // namespace

std::vector<Count> read_sizes(const json::Node& node) {
  if (node.is_object()) return range(node);
  if (!node.is_array()) return {node.bytes()};
  std::vector<Count> sizes;
  for (const json::Node& item : node.items(1, kSizesMax)) {
    const Count size = item.bytes();
    if (std::find(sizes.begin(), sizes.end(), size) != sizes.end())
      item.fail(fmt::format("size {} appears twice", size));
    sizes.push_back(size);
  }
  return sizes;
}

Count elements(Collective kind, Count bytes, Rank ranks, unsigned element_bytes) {
  if (kind == Collective::barrier) return 0;
  const Count unit = Count(element_bytes) * (counts_blocks(kind) ? ranks : 1);
  return bytes / unit + (bytes % unit != 0);
}

Count total_bytes(Collective kind, Count count, Rank ranks, unsigned element_bytes) {
  return count * element_bytes * (counts_blocks(kind) ? ranks : 1);
}

}  // namespace gccl::sim
