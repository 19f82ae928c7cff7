#include "libgccl/cluster/read/mpi_memory.hpp"

#include "libgccl/cluster/composed.hpp"
#include "libgccl/cluster/read/parameters.hpp"

namespace gccl {

void read_mpi(const json::Node& v, std::optional<MpiMemory>& memory) {
  v.allow({"fresh_GBps", "fresh_bytes", "several_bytes", "source"});
  if (const auto source = v.find("source")) source->string();
  MpiMemory m = memory.value_or(MpiMemory());
  if (const auto n = v.find("fresh_GBps")) m.fresh_GBps = n->number(kLinkGBpsMin, kLinkGBpsMax);
  if (const auto n = v.find("fresh_bytes")) m.fresh_bytes = n->bytes();
  if (const auto n = v.find("several_bytes")) m.several_bytes = n->bytes();
  if (m.fresh_GBps == 0) v.fail("\"fresh_GBps\" is missing: neither the set nor its base gives it");
  memory = m;
}

std::optional<MpiMemory> mpi_memory(const Cluster& cluster) {
  const auto* composed = dynamic_cast<const ComposedCluster*>(&cluster);
  return composed ? composed->parts().mpi : std::nullopt;
}

}  // namespace gccl
