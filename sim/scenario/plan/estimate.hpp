// How much work a point is, before it is simulated.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl::sim {

// The work of one call, from the schedules of at most five ranks, the root among them. Exact for algorithms in which
// all ranks do alike; for rooted ones the lower of what the sampled ranks' sends and receives suggest. Takes as long as
// pulling five schedules.
struct EstimatedWork {
  double messages = 0;
  double steps = 0;  // sends, receives, copies and reductions: what an engine's time is proportional to
};
EstimatedWork estimated_work(const Algorithm& algorithm, const Call& call, const Layout& layout, Count shares,
                             Count lanes = 1);

}  // namespace gccl::sim
