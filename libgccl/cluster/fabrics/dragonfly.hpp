// Dragonflies: groups of routers, every two groups joined by global cables.
// Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008. Dragonfly+, with a
// two-level tree inside each group: Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters", HiPINEB
// 2017.
#pragma once

#include "libgccl/cluster/fabrics/fabric.hpp"

namespace gccl {

enum class DragonflyRouting { minimal, spread, valiant };  // see Dragonfly

struct DragonflyShape {
  std::uint32_t groups = 1;
  std::uint32_t leaves = 1;        // routers of a group that have ports
  std::uint32_t spines = 0;        // 0: dragonfly, its routers joined pairwise; else dragonfly+, a leaf-spine tree
  std::uint32_t leaf_ports = 1;    // ports of a router
  std::uint32_t global_links = 1;  // cables between every two groups
  DragonflyRouting routing = DragonflyRouting::minimal;
  LinkKind local, global;  // local forward: leaf to spine

  std::uint64_t local_cables() const {
    return groups * (spines ? std::uint64_t(leaves) * spines : std::uint64_t(leaves) * (leaves - 1) / 2);
  }
  std::uint64_t global_cables() const { return std::uint64_t(groups) * (groups - 1) / 2 * global_links; }
};

// Minimal routes, at most one global cable. Of the cables between two groups a message takes number (to mod
// global_links); where a group's cables start is spread over its routers (dragonfly) or spines (dragonfly+) in turn.
// Inside a group of a dragonfly+ a message climbs to spine (to mod spines).
//
// With `spread`, what a router's ports send to another router of the group goes different ways: from port 0 over their
// own cable, from port k over a router k further on than the receiver's, where that is neither of the two. So ranks
// that follow each other do not all share one cable, as adaptive routing sees to (Slingshot: De Sensi et al., "An
// in-depth analysis of the Slingshot interconnect", SC 2020, section II); a group has twice as many cables as ports for
// that.
//
// `valiant` spreads what is inside a group likewise, and leads messages between two groups over a third one, another
// for each pair of ports in turn (Valiant, "A scheme for fast parallel communication", SIAM J. Comput. 11, 1982; Kim et
// al., section 4.1). So all of one group can send to all of another, where minimal routes have the cables of these two
// alone; what is even between all groups anyway loads global cables twice. It stands for adaptive routing (UGAL) in a
// job that has a part of the machine.
class Dragonfly final : public Fabric {
 public:
  explicit Dragonfly(const DragonflyShape& shape);

  void route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const override;
  std::string link_name(LinkId link) const override;
  std::string switch_of(FabricPort port) const override;
  std::uint64_t switch_number(FabricPort port) const override { return port / s_.leaf_ports; }
  std::optional<double> bisection_GBps() const override;
  std::vector<Layer> layers() const override;
  std::string describe() const override;

 private:
  // From router a to router b of a group (dragonfly); from leaf up to a spine and from a spine down to a leaf
  // (dragonfly+).
  LinkId local(std::uint32_t group, std::uint32_t a, std::uint32_t b) const;
  LinkId up(std::uint32_t group, std::uint32_t leaf, std::uint32_t spine) const;
  // The ways of the three routings, for ports of different routers.
  void inside(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const;
  // From router or leaf a of group g over cable c to router or leaf b of group h.
  void cross(std::uint32_t g, std::uint32_t a, std::uint32_t c, std::uint32_t h, std::uint32_t b, LinkId base,
             std::vector<LinkId>& out) const;
  // Cable `c` from group g to group h, and the router or spine of g at its end.
  LinkId global(std::uint32_t g, std::uint32_t h, std::uint32_t c) const;
  std::uint32_t gateway(std::uint32_t g, std::uint32_t h, std::uint32_t c) const;

  DragonflyShape s_;
  LinkId global_base_;
};

}  // namespace gccl
