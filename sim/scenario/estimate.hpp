// How much work a point is, before it is simulated.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl::sim {

// Messages of one call, from the schedules of at most four ranks. Exact for algorithms in which all ranks do alike; for
// rooted ones the lower of what the sampled ranks' sends and receives suggest. Takes as long as pulling four schedules.
double estimated_messages(const Algorithm& algorithm, const Call& call, const Layout& layout, Count shares);

}  // namespace gccl::sim
