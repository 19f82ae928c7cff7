#include "libgccl/cluster/fat_tree.hpp"

#include <fmt/format.h>

#include <limits>

namespace gccl {
namespace {

std::uint64_t parts(std::uint64_t n, std::uint64_t size) { return (n + size - 1) / size; }

}  // namespace

FatTree::FatTree(const FatTreeShape& s, std::uint64_t ports, std::uint64_t ports_per_tree)
    : shape_(s),
      leaves_(std::uint32_t(parts(ports, s.leaf_size))),
      trees_(std::uint32_t(parts(ports, ports_per_tree))),
      leaves_per_tree_(std::uint32_t(parts(std::min(ports, ports_per_tree), s.leaf_size))) {
  if (leaves_per_tree_ < 2) return;
  for (std::uint64_t i = 0; i < std::uint64_t(leaves_) * s.uplinks; ++i) add_cable(s.spine.at(Tier::spine));
  core_base_ = LinkId(links_.size());
  if (!s.pod_leaves || leaves_per_tree_ <= s.pod_leaves) return;
  const std::uint64_t pods = parts(leaves_, s.pod_leaves);
  for (std::uint64_t i = 0; i < pods * s.uplinks * s.core_uplinks; ++i) add_cable(s.core.at(Tier::core));
}

std::string FatTree::link_name(LinkId link) const {
  const bool core = link >= core_base_, down = link & 1;
  const std::uint32_t k = (core ? link - core_base_ : link) / 2;
  std::string low, high;
  if (core) {
    const std::uint32_t spine = k / shape_.core_uplinks, pod = spine / shape_.uplinks;
    const std::uint32_t tree = pod * shape_.pod_leaves / leaves_per_tree_;
    low = fmt::format("pod{}/spine{}", pod, spine % shape_.uplinks);
    high = fmt::format("{}core{}.{}", trees_ > 1 ? fmt::format("plane{}/", tree) : "", spine % shape_.uplinks,
                       k % shape_.core_uplinks);
  } else {
    const std::uint32_t leaf = k / shape_.uplinks;
    low = fmt::format("leaf{}", leaf);
    const std::string where = shape_.pod_leaves ? fmt::format("pod{}/", leaf / shape_.pod_leaves)
                              : trees_ > 1      ? fmt::format("plane{}/", leaf / leaves_per_tree_)
                                                : "";
    high = fmt::format("{}spine{}", where, k % shape_.uplinks);
  }
  return down ? high + "->" + low : low + "->" + high;
}

std::string FatTree::switch_of(FabricPort port) const { return fmt::format("leaf{}", port / shape_.leaf_size); }

std::optional<double> FatTree::bisection_GBps() const {
  double narrowest = std::numeric_limits<double>::infinity();
  double spine = 0, core = 0;
  for (std::size_t i = 0; i < links_.size(); i += 2) (i < core_base_ ? spine : core) += links_[i].bandwidth_GBps;
  if (spine > 0) narrowest = std::min(narrowest, spine / 2);
  if (core > 0) narrowest = std::min(narrowest, core / 2);
  return narrowest;
}

std::vector<Layer> FatTree::layers() const {
  if (links_.empty()) return {{"leaf", leaves_, {}, {}}};
  std::vector<Layer> all{{"leaf", leaves_, Tier::spine, {}}};
  const std::uint64_t pods = shape_.pod_leaves ? parts(leaves_, shape_.pod_leaves) : trees_;
  all.push_back({"spine", pods * shape_.uplinks, {}, {}});
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

}  // namespace gccl
