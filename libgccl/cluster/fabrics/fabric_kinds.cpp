#include "libgccl/cluster/fabrics/fabric_kind.hpp"

// A line for each kind of fabric, in the order in which messages list them.
// clang-format off
#define GCCL_FABRICS(line) \
  line(switch_fabric) \
  line(fat_tree_fabric) \
  line(rail_fabric) \
  line(multi_plane_fabric) \
  line(dragonfly_fabric) \
  line(dragonfly_plus_fabric) \
  line(torus_fabric) \
  line(custom_fabric)
// clang-format on

namespace gccl {

#define GCCL_DECLARE(kind) extern const FabricKind kind;
GCCL_FABRICS(GCCL_DECLARE)
#undef GCCL_DECLARE

std::span<const FabricKind* const> fabric_kinds() {
#define GCCL_ADDRESS(kind) &kind,
  static constexpr const FabricKind* kKinds[] = {GCCL_FABRICS(GCCL_ADDRESS)};
#undef GCCL_ADDRESS
  return kKinds;
}

}  // namespace gccl
