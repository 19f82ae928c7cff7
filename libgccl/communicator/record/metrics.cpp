#include "libgccl/communicator/record/metrics.hpp"

#include <cstring>

namespace gccl {

void Metrics::read(GCCL_Metrics* out) const {
  const std::size_t bytes = std::min(out->struct_bytes, sizeof counts_);
  std::memcpy(out, &counts_, bytes);
  out->struct_bytes = bytes;
  for (std::size_t k = 0; k < GCCL_METRICS_KINDS; ++k) {
    const bool known = k < collective_names().size() || k >= kSendKind;
    out->calls[k].name = known ? kind_name(std::uint8_t(k)).data() : nullptr;
  }
}

}  // namespace gccl
