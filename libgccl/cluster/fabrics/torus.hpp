// Tori and meshes of one to six dimensions.
// Dimension-order routing: Dally and Seitz, IEEE Transactions on Computers C-36 (1987).
#pragma once

#include "libgccl/cluster/fabrics/fabric.hpp"

namespace gccl {

struct TorusShape {
  std::vector<std::uint32_t> dims;  // the first one varies fastest in the numbering of routers
  bool wrap = true;                 // false: a mesh
  std::uint32_t router_ports = 1;
  LinkKind link;  // forward: towards the larger coordinate
};

// A message goes along the first dimension until its coordinate is right, then along the next one; the shorter way
// round, the forward way when both are as long. A dimension of two routers has one cable, not two.
class Torus final : public Fabric {
 public:
  explicit Torus(const TorusShape& shape, Tier tier);

  void route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const override;
  std::string link_name(LinkId link) const override;
  std::string switch_of(FabricPort port) const override;
  std::uint64_t switch_number(FabricPort port) const override { return port / shape_.router_ports; }
  std::optional<double> bisection_GBps() const override;
  std::vector<Layer> layers() const override;
  std::string describe() const override;

  const std::vector<std::uint32_t>& dims() const { return shape_.dims; }
  // Links of a whole torus of this shape, both directions counted.
  static std::uint64_t link_count(const TorusShape& shape);

 private:
  // One dimension: its routers form `lines` lines of `size`, each with `cables` cables; cable i joins i and i+1.
  struct Axis {
    std::uint32_t size, stride, cables;
    LinkId base;
  };
  std::string router_name(std::uint32_t router) const;

  TorusShape shape_;
  Tier tier_;
  std::uint32_t routers_ = 1;
  std::vector<Axis> axes_;
};

}  // namespace gccl
