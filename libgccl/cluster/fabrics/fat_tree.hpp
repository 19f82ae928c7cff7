// Fat trees of two or three levels, and several of them side by side (planes).
// Leiserson, IEEE Transactions on Computers C-34 (1985); d-mod-k routing: Zahavi, "D-Mod-K routing providing
// non-blocking traffic for shift permutations on real life fat trees", CCIT report 776, Technion (2010).
#pragma once

#include "libgccl/cluster/fabrics/fabric.hpp"

namespace gccl {

struct FatTreeShape {
  std::uint32_t leaf_size = 1;     // ports of a leaf that go down
  std::uint32_t uplinks = 1;       // cables of a leaf that go up
  std::uint32_t pod_leaves = 0;    // leaves below the same spines; 0: two levels
  std::uint32_t core_uplinks = 1;  // cables of a spine that go up; three levels only
  LinkKind spine, core;            // forward goes up
  std::string arrangement;         // how NICs are plugged in, for describe(), such as "8 rails on a "
};

// `ports` ports; every `ports_per_tree` of them, a multiple of the shape's leaf_size, are a tree of their own. Uplink u
// of a leaf leads to spine u of its pod, uplink c of spine u to core (u, c). A tree's last pod has as many leaves as
// there are left. A message climbs by uplink (to mod
// uplinks) and core uplink (to / uplinks mod core_uplinks), and comes down the one way there is: all that is sent to a
// port shares its way down, and the messages of a shift permutation on a full tree meet no other.
class FatTree final : public Fabric {
 public:
  FatTree(const FatTreeShape& shape, std::uint64_t ports, std::uint64_t ports_per_tree);

  void route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const override {
    const std::uint32_t a = from / shape_.leaf_size, b = to / shape_.leaf_size;
    if (a == b) return;
    const std::uint32_t u = to % shape_.uplinks;
    out.push_back(base + 2 * (a * shape_.uplinks + u));
    if (shape_.pod_leaves) {
      const std::uint32_t p = pod_of(a), q = pod_of(b);
      if (p != q) {
        const std::uint32_t c = to / shape_.uplinks % shape_.core_uplinks;
        out.push_back(base + core_base_ + 2 * ((p * shape_.uplinks + u) * shape_.core_uplinks + c));
        out.push_back(base + core_base_ + 2 * ((q * shape_.uplinks + u) * shape_.core_uplinks + c) + 1);
      }
    }
    out.push_back(base + 2 * (b * shape_.uplinks + u) + 1);
  }
  std::string link_name(LinkId link) const override;
  std::string switch_of(FabricPort port) const override;
  std::uint64_t switch_number(FabricPort port) const override { return port / shape_.leaf_size; }
  std::optional<double> bisection_GBps() const override;
  std::vector<Layer> layers() const override;
  std::string describe() const override;

 private:
  std::uint32_t pod_of(std::uint32_t leaf) const {
    return leaf / leaves_per_tree_ * pods_per_tree_ + leaf % leaves_per_tree_ / shape_.pod_leaves;
  }

  FatTreeShape shape_;
  std::uint32_t leaves_, trees_, leaves_per_tree_, pods_per_tree_;  // no pods: 1 stands for the spines of a tree
  LinkId core_base_ = 0;
};

constexpr std::uint64_t rounded_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

// For kinds of fabric that are fat trees: the shape that a description gives, and the tree; `ports` may leave leaves
// partly empty. Throws json::InputError.
FatTreeShape read_fat_tree_shape(const json::Node& v, const Parameters& parameters);
std::unique_ptr<Fabric> make_fat_tree(const json::Node& v, const FatTreeShape& shape, std::uint64_t ports,
                                      std::uint64_t ports_per_tree);

}  // namespace gccl
