#include "libgccl/cluster/fabrics/crossbar.hpp"

#include "libgccl/cluster/fabrics/fabric_kind.hpp"

namespace gccl {
namespace {

void read_switch(const json::Node& v, const Parameters&, Composition& c) {
  v.allow({"kind"});
  plug_in_order(c);
  c.fabric = std::make_unique<Crossbar>();
}

}  // namespace

extern const FabricKind switch_fabric{.name = "switch", .read = read_switch};

}  // namespace gccl
