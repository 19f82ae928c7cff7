#include "libgccl/cluster/fabrics/fat_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"

namespace gccl {
namespace {

std::uint64_t parts(std::uint64_t n, std::uint64_t size) { return (n + size - 1) / size; }

}  // namespace

FatTree::FatTree(const FatTreeShape& s, std::uint64_t ports, std::uint64_t ports_per_tree)
    : shape_(s),
      leaves_(std::uint32_t(parts(ports, s.leaf_size))),
      trees_(std::uint32_t(parts(ports, ports_per_tree))),
      leaves_per_tree_(std::uint32_t(parts(std::min(ports, ports_per_tree), s.leaf_size))),
      pods_per_tree_(s.pod_leaves ? std::uint32_t(parts(leaves_per_tree_, s.pod_leaves)) : 1) {
  if (leaves_per_tree_ < 2) return;
  for (std::uint64_t i = 0; i < std::uint64_t(leaves_) * s.uplinks; ++i) add_cable(s.spine.at(Tier::spine));
  core_base_ = LinkId(links_.size());
  if (pods_per_tree_ == 1) return;
  const std::uint64_t spines = std::uint64_t(trees_) * pods_per_tree_ * s.uplinks;
  for (std::uint64_t i = 0; i < spines * s.core_uplinks; ++i) add_cable(s.core.at(Tier::core));
}

std::string FatTree::link_name(LinkId link) const {
  const bool core = link >= core_base_, down = link & 1;
  const std::uint32_t k = (core ? link - core_base_ : link) / 2;
  std::string low, high;
  if (core) {
    const std::uint32_t spine = k / shape_.core_uplinks, pod = spine / shape_.uplinks;
    const std::uint32_t tree = pod / pods_per_tree_;
    low = fmt::format("pod{}/spine{}", pod, spine % shape_.uplinks);
    high = fmt::format("{}core{}.{}", trees_ > 1 ? fmt::format("plane{}/", tree) : "", spine % shape_.uplinks,
                       k % shape_.core_uplinks);
  } else {
    const std::uint32_t leaf = k / shape_.uplinks;
    low = fmt::format("leaf{}", leaf);
    const std::string where = shape_.pod_leaves ? fmt::format("pod{}/", pod_of(leaf))
                              : trees_ > 1      ? fmt::format("plane{}/", leaf / leaves_per_tree_)
                                                : "";
    high = fmt::format("{}spine{}", where, k % shape_.uplinks);
  }
  return down ? high + "->" + low : low + "->" + high;
}

std::string FatTree::switch_of(FabricPort port) const { return fmt::format("leaf{}", port / shape_.leaf_size); }

std::optional<double> FatTree::bisection_GBps() const {
  // What crosses climbs in one half and comes down in the other.
  const auto level = [&](const LinkKind& kind, LinkId links) {
    if (links == 0) return std::numeric_limits<double>::infinity();
    return links / 2 * kind.narrower_GBps() / 2;
  };
  return std::min(level(shape_.spine, core_base_), level(shape_.core, LinkId(links_.size()) - core_base_));
}

std::vector<Layer> FatTree::layers() const {
  if (links_.empty()) return {{"leaf", leaves_, {}, {}}};
  std::vector<Layer> all{{"leaf", leaves_, Tier::spine, {}}};
  all.push_back({"spine", std::uint64_t(trees_) * pods_per_tree_ * shape_.uplinks, {}, {}});
  if (links_.size() > core_base_) {
    all.back().up = Tier::core;
    all.push_back({"core", std::uint64_t(trees_) * shape_.uplinks * shape_.core_uplinks, {}, {}});
  }
  return all;
}

std::string FatTree::describe() const {
  std::string text = fmt::format("{}fat tree: {} leaves, {} ports down and {} up each", shape_.arrangement,
                                 leaves_per_tree_, shape_.leaf_size, shape_.uplinks);
  if (shape_.pod_leaves)
    text += fmt::format("; pods of {} leaves, {} uplinks per spine", shape_.pod_leaves, shape_.core_uplinks);
  return text;
}

FatTreeShape read_fat_tree_shape(const json::Node& v, const Parameters& p) {
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

std::unique_ptr<Fabric> make_fat_tree(const json::Node& v, const FatTreeShape& s, std::uint64_t ports,
                                      std::uint64_t ports_per_tree) {
  if (ports > ~FabricPort(0)) v.fail(fmt::format("makes {} ports, expected at most {}", ports, ~FabricPort(0)));
  const double leaves = std::ceil(double(ports) / s.leaf_size);
  const double trees = std::ceil(double(ports) / double(ports_per_tree));
  const double pods = s.pod_leaves ? trees * std::ceil(leaves / trees / s.pod_leaves) : 0;
  check_link_count(v, 2 * leaves * s.uplinks + 2 * pods * s.uplinks * s.core_uplinks);
  return std::make_unique<FatTree>(s, ports, ports_per_tree);
}

namespace {

void read_fat_tree(const json::Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "levels", "radix", "leaf_size", "oversubscription", "pod_leaves", "core_oversubscription", "link",
           "core_link"});
  plug_in_order(c);
  const std::uint64_t ports = c.port_of_nic.size();
  c.fabric = make_fat_tree(v, read_fat_tree_shape(v, p), ports, ports);
}

}  // namespace

extern const FabricKind fat_tree_fabric{.name = "fat_tree", .read = read_fat_tree};

}  // namespace gccl
