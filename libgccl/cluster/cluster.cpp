#include "libgccl/cluster/cluster.hpp"

#include "libgccl/cluster/read/transport_model.hpp"

namespace gccl {
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
