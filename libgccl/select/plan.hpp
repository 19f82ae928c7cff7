// The planner: how a call is carried out. Real communicators, scenarios and the bench ask this one.
#pragma once

#include <span>
#include <string>

#include "libgccl/cost/slicing.hpp"
#include "libgccl/select/overrides.hpp"
#include "libgccl/select/tuning.hpp"

namespace gccl {

struct Plan {
  const Algorithm* algorithm = nullptr;
  const Algorithm* refused = nullptr;  // asked for by an override, and unable to serve the call
  Slicing slicing;
};

// The plan of a call, from what every rank knows, so that all ranks make the same one: `view` is rank 0's. An override
// decides, then a preference of the transport, then the lowest prediction among the rows of `table` that can serve the
// call, have a closed form and are no variants; on a tie the earlier row. Chunks are part of a prediction: an algorithm
// whose ranks pass on a chunk while the next arrives has an interval, the others take turns. The algorithm is null
// where there is none. Whether the rank works in place does not matter.
Plan plan(const Call& call, const View& view, const CostModel& model, const Tuning& tuning = {},
          const Overrides& overrides = {}, std::span<const Algorithm> table = algorithms());

// How an algorithm is cut up for a call on so many ranks.
Slicing slicing_of(const Algorithm& algorithm, Rank ranks, double bytes, const Tuning& tuning);

// Nanoseconds for the whole call with that slicing; NaN where the algorithm has no closed form.
Cost predicted(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
               const Slicing& slicing, const Tuning& tuning = {});

}  // namespace gccl
