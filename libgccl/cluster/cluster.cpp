#include "libgccl/cluster/cluster.hpp"

#include "libgccl/cluster/read/transport_model.hpp"

namespace gccl {
std::string_view name(Tier t) {
  static constexpr std::string_view kNames[] = {"card", "node", "nic", "leaf", "spine", "core", "other"};
  return kNames[std::size_t(t)];
}
const Protocols& Cluster::protocols() const {
  static const Protocols plain(1);
  return plain;
}
const Corrections& Cluster::corrections() const {
  static const Corrections none;
  return none;
}
const TransportModels& Cluster::transports() const { return transport_models(); }
}  // namespace gccl
