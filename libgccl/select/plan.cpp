#include "libgccl/select/plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gccl {
namespace {

constexpr double kChunksMax = 4096;
// Predictions that differ by less are equal. Many are, by their formulas, and rounding must not decide between them: it
// would decide otherwise in a library of another compiler, whose rank would then run another algorithm.
constexpr double kTie = 1e-9;

// Of the table, or of a copy of some of its rows.
bool same(const Algorithm* a, const Algorithm& b) { return a == &b || (a->kind == b.kind && a->name == b.name); }

const Algorithm* preferred(const Call& call, const View& view, double bytes, const Tuning& tuning) {
  for (const Tuning::Preference& p : tuning.preferences)
    if (p.holds(call, view.all.size, bytes) && p.algorithm->can(call, view)) return p.algorithm;
  return nullptr;
}

// A pairwise all-reduce sends each rank its part of the vectors, all others whole blocks.
double incast_bytes(const Call& call, Rank ranks, double bytes) {
  return call.kind == Collective::allreduce ? bytes : bytes * (ranks - 1);
}

const Algorithm* without_incast(const Algorithm* best, const Call& call, const View& view, double bytes,
                                const Tuning& tuning) {
  for (const Tuning::Incast& i : tuning.incast)
    if (same(i.algorithm, *best) && incast_bytes(call, view.all.size, bytes) > i.bytes_max &&
        i.fallback->can(call, view))
      return i.fallback;
  return best;
}

const Algorithm* cheapest(const Call& call, const View& view, const CostModel& model, double bytes,
                          const Tuning& tuning, std::span<const Algorithm> table) {
  const Algorithm* best = nullptr;
  Cost best_cost = 0;
  for (const Algorithm& a : table) {
    if (a.kind != call.kind || a.variant || !a.cost || !a.can(call, view)) continue;
    const Slicing slicing = slicing_of(a, view.all.size, bytes, tuning);
    const Cost cost = predicted(a, call, view, model, slicing, tuning);
    if (best && !(cost < best_cost * (1 - kTie))) continue;
    best = &a;
    best_cost = cost;
  }
  return best ? without_incast(best, call, view, bytes, tuning) : nullptr;
}

}  // namespace

Slicing slicing_of(const Algorithm& algorithm, Rank ranks, double bytes, const Tuning& tuning) {
  Slicing s{.shares = 1, .lanes = 1, .window = tuning.window};
  if (ranks <= 1) return s;
  for (const Tuning::Chunks& c : tuning.chunks) {
    if (c.kind != algorithm.kind || (c.algorithm && !same(c.algorithm, algorithm)) || ranks < c.ranks_min) continue;
    if (c.bytes > 0) s.shares = Count(std::clamp(bytes / c.bytes, 1.0, kChunksMax));
    break;
  }
  s.lanes = std::min(tuning.channels_max, s.shares);
  return s;
}

// Chunks follow each other at an algorithm's interval, once the first is through. Where it gives none, the next chunk
// of a channel waits for the one before; channels wait for their latencies at the same time, and share what bytes cost.
// That long chunks of several channels pass a port in turns, and so all of them late, no form follows.
Cost predicted(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
               const Slicing& slicing, const Tuning& tuning) {
  if (!algorithm.cost) return NAN;
  if (slicing.shares == 1 || call.count <= 1 || !tuning.chunks_overlap || has_counts(call.kind))
    return algorithm.cost(call, view, model);
  Call chunk = call;
  chunk.count = std::max<Count>(1, call.count / slicing.shares);
  const Count shares = std::min(slicing.shares, call.count), lanes = std::min(slicing.lanes, shares);
  const Cost one = algorithm.cost(chunk, view, model);
  Cost turns = one, interval = 0;
  if (algorithm.interval) {
    interval = algorithm.interval(chunk, view, model, slicing);
  } else {
    Call empty = call;
    empty.count = 1;
    interval = std::max(0.0, one - algorithm.cost(empty, view, model));
    turns = double((shares + lanes - 1) / lanes) * one + double(lanes - 1) * model.exchange_gap_ns();
  }
  for (const Tuning::Rate& r : tuning.rates)
    if (same(r.algorithm, algorithm)) interval /= r.share;
  return std::max(turns, one + double(shares - 1) * std::min(interval, one));
}

Plan plan(const Call& given, const View& view, const CostModel& model, const Tuning& tuning, const Overrides& overrides,
          std::span<const Algorithm> table) {
  Call call = given;
  call.in_place = false;
  const double bytes = model.bytes(double(call.count));
  Plan p;
  p.algorithm = overrides.of(call.kind);
  if (p.algorithm && !p.algorithm->can(call, view)) p.refused = std::exchange(p.algorithm, nullptr);
  if (!p.algorithm) p.algorithm = preferred(call, view, bytes, tuning);
  if (!p.algorithm) p.algorithm = cheapest(call, view, model, bytes, tuning, table);
  if (p.algorithm) p.slicing = slicing_of(*p.algorithm, view.all.size, bytes, tuning);
  return p;
}

}  // namespace gccl
