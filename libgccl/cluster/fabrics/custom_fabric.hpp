// A fabric given switch by switch and cable by cable, with shortest-path routes.
#pragma once

#include "libgccl/cluster/fabrics/fabric.hpp"

namespace gccl {

struct CustomShape {
  struct Cable {
    std::uint32_t a, b;  // switches
    LinkKind kind;       // forward: from a to b
  };
  std::vector<std::string> switches;
  std::vector<Cable> cables;
  std::vector<std::uint32_t> switch_of_port;
  bool hash = false;  // equal-cost ways by a hash of (from, to); else by `to` alone (d-mod-k)
};

// Tables of distances, one row for each switch that has ports. At every switch the equal-cost cables towards the
// destination, in the order of the description, are the choices.
class CustomFabric final : public Fabric {
 public:
  explicit CustomFabric(CustomShape shape);

  // Two switches with ports between which there is no way, if any.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> unconnected() const;

  void route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const override;
  std::string link_name(LinkId link) const override;
  std::string switch_of(FabricPort port) const override { return shape_.switches[shape_.switch_of_port[port]]; }
  std::uint64_t switch_number(FabricPort port) const override { return number_[shape_.switch_of_port[port]]; }
  std::optional<double> bisection_GBps() const override { return std::nullopt; }
  std::vector<Layer> layers() const override;
  std::vector<Bundle> bundles() const override;
  bool layered() const override;
  std::string describe() const override;

 private:
  static constexpr std::uint16_t kFar = 0xffff;
  struct Out {
    std::uint32_t to;
    LinkId link;
  };

  // For each switch its layer and its place there.
  std::vector<Bundle::End> places() const;

  CustomShape shape_;
  std::vector<std::uint32_t> begin_;  // begin_[s] .. begin_[s+1]: the part of out_ that leaves switch s
  std::vector<Out> out_;
  std::vector<std::uint32_t> number_;    // number_[s]: switches with ports before s
  std::vector<std::uint32_t> row_;       // row_[s]: row of switch s in distance_, if it has ports
  std::vector<std::uint16_t> distance_;  // distance_[row * switches + s]: links from s to the row's switch
};

}  // namespace gccl
