#include "libgccl/algorithms/pipelined.hpp"

#include <algorithm>
#include <cmath>

namespace gccl {

Cost pipelined(double messages, const Hop& hop, double bytes, double overhead_ns, double steps_each) {
  if (messages <= 0) return 0;
  const double gap = std::max(overhead_ns, bytes * hop.beta_ns_per_byte);
  const double in_flight = kStepsInFlight / steps_each;
  const double batches = std::floor((messages - 1) / in_flight), rest = messages - 1 - batches * in_flight;
  // While a full window passes, either its messages' gaps or the oldest message's whole time.
  return batches * std::max(in_flight * gap, hop(bytes)) + rest * gap + hop(bytes);
}

}  // namespace gccl
