// One switch that never blocks: only the NICs' own cables bound the traffic.
#pragma once

#include <limits>

#include "libgccl/cluster/fabrics/fabric.hpp"

namespace gccl {

class Crossbar final : public Fabric {
 public:
  void route(FabricPort, FabricPort, LinkId, std::vector<LinkId>&) const override {}
  std::string link_name(LinkId) const override { return {}; }
  std::string switch_of(FabricPort) const override { return "switch"; }
  std::uint64_t switch_number(FabricPort) const override { return 0; }
  std::optional<double> bisection_GBps() const override { return std::numeric_limits<double>::infinity(); }
  std::vector<Layer> layers() const override { return {{"switch", 1, {}, {}}}; }
  std::string describe() const override { return "non-blocking switch"; }
};

}  // namespace gccl
