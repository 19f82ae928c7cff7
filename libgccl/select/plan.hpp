// The planner: how a call is carried out. Real communicators, scenarios and the bench ask this one.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "libgccl/cost/slicing.hpp"
#include "libgccl/select/authorities.hpp"
#include "libgccl/select/detours.hpp"
#include "libgccl/select/tuning.hpp"

namespace gccl {

struct Plan {
  const Algorithm* algorithm = nullptr;
  Slicing slicing;
  std::size_t protocol = 0;  // index of the model it was planned with
  Cost predicted_ns = NAN;   // NaN: there is no closed form, or nobody needed it
  Authority by = Authority::model;
  bool limited = false;                       // GCCL_ALGO left out some candidates
  const TuningTable::Entry* entry = nullptr;  // of the table, where that decided
  const Algorithm* second = nullptr;          // what the model would have taken instead
  Cost second_ns = NAN;
  // What was asked for first and cannot serve the call: by whom, and for GCCL_ALGO the first of its list.
  const Algorithm* refused = nullptr;
  Authority refused_by = Authority::model;
};

// The most chunks that an algorithm may be cut up into; null: kChunksMax.
constexpr Count kChunksMax = 4096;
using ChunksMax = std::function<Count(const Algorithm&)>;

// Predictions that differ by less are equal. Many are, by their formulas, and rounding must not decide between them: it
// would decide otherwise in a library of another compiler, whose rank would then run another algorithm.
constexpr double kTie = 1e-9;

// What a call may cost: a model for each protocol that it can be carried out by.
using CostModels = std::span<const CostModel>;

// Whether the protocol of that model is for such calls, where there are others to choose from: long ones are not for
// all, and a switch does not carry the flags of some.
bool protocol_serves(const CostModel& model, const Algorithm& algorithm, const Call& call, const View& view);
// Whether by one of them the switches of nodes multicast and reduce.
bool by_switches(CostModels models);

// How a given algorithm carries a call out. The slicing is the stated one or as the tuning says or, where it lets
// search, the fewest of at most `most` chunks whose prediction is within 1 % of the best; the protocol that with the
// lowest prediction, of those for calls of that length, on a tie the earlier one.
Plan plan_of(const Algorithm& algorithm, const Call& call, const View& view, CostModels models, const Tuning& tuning,
             const ChunksMax& most = nullptr, const std::optional<Slicing>& stated = {});

// The plan of a call, from what every rank knows, so that all ranks make the same one: `view` is rank 0's. What the
// authorities ask for decides, in their order, then a preference of the transport, then the lowest prediction among the
// rows of `table` that can serve the call, have a closed form and are no variants; on a tie the earlier row. Chunks are
// part of a prediction: an algorithm whose ranks pass on a chunk while the next arrives has an interval, the others
// take turns. The algorithm is null where there is none. Whether the rank works in place does not matter. With detours
// that stays where it sends nothing between a slow pair; else what these add is part of each prediction, and the
// transport prefers nothing that sends there. A stated slicing is that of every prediction, so the choice is one among
// calls that are all carried out by it; then the transport prefers nothing, and an entry of a table counts only where
// it states no other chunks and channels.
Plan plan(const Call& call, const View& view, CostModels models, const Tuning& tuning = {},
          const Authorities& authorities = {}, std::span<const Algorithm> table = algorithms(),
          const ChunksMax& most = nullptr, const Detours* detours = nullptr, const std::optional<Slicing>& stated = {});
inline Plan plan(const Call& call, const View& view, const CostModel& model, const Tuning& tuning = {},
                 const Authorities& authorities = {}, std::span<const Algorithm> table = algorithms()) {
  return plan(call, view, CostModels(&model, 1), tuning, authorities, table);
}

// Nanoseconds for the whole call with that slicing; NaN where the algorithm has no closed form.
Cost predicted(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
               const Slicing& slicing, const Tuning& tuning = {});

}  // namespace gccl
