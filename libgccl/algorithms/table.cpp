#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

std::vector<Algorithm> table() {
  std::vector<Algorithm> all;
#define GCCL_ROW(name) all.push_back(name);
#define GCCL_FAMILY(name) all.insert(all.end(), name.begin(), name.end());
  GCCL_ALGORITHMS(GCCL_ROW, GCCL_FAMILY)
#undef GCCL_ROW
#undef GCCL_FAMILY
  return all;
}

// The shares of a lane, one after the other or half by half.
Schedule in_turn(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes) {
  const Count own = algorithm->shares_of(shares, lane, lanes);
  if (!algorithm->trail) {
    for (Count i = 0; i < own; ++i) co_yield algorithm->make(call, view, algorithm->share(i, shares, lane, lanes));
    co_return;
  }
  const Count trail = std::min(algorithm->trail(view), own);
  for (Count i = 0; i < own + trail; ++i) {
    if (i < own) co_yield algorithm->first_half(call, view, algorithm->share(i, shares, lane, lanes));
    if (i >= trail) co_yield algorithm->second_half(call, view, algorithm->share(i - trail, shares, lane, lanes));
  }
}

}  // namespace

std::span<const Algorithm> algorithms() {
  static const auto& all = *new const std::vector<Algorithm>(table());  // plans point into it until the process ends
  return all;
}

const Algorithm* find_algorithm(Collective kind, std::string_view name) {
  for (const Algorithm& a : algorithms())
    if (a.kind == kind && a.name == name) return &a;
  return nullptr;
}

std::vector<std::string_view> algorithm_names(std::optional<Collective> kind) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : algorithms())
    if ((!kind || *kind == a.kind) && std::find(names.begin(), names.end(), a.name) == names.end())
      names.push_back(a.name);
  return names;
}

Count Algorithm::shares_of(Count shares, Count lane, Count lanes) const {
  const Count own = lane < shares ? (shares - lane - 1) / lanes + 1 : 0;
  return own + (staggers(shares, lanes) && lane + 1 < lanes);
}

// In step, lane l has shares l, l + lanes, ...; staggered, with a length of `lanes` each, shares that follow each
// other, of which the first has length l + 1 and the last what is left.
Share Algorithm::share(Count i, Count shares, Count lane, Count lanes) const {
  const Count own = shares / lanes;
  if (!staggers(shares, lanes)) return {lane + i * lanes, shares};
  const Count first = lane + 1, begin = lane * own * lanes;
  const Count from = i == 0 ? 0 : first + (i - 1) * lanes, to = std::min(first + i * lanes, own * lanes);
  return {begin + from, shares * lanes, to - from};
}

Schedule sliced(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes) {
  view.channel = Rank(lane);
  view.channels = Rank(lanes);
  // A lane of one share is that share's schedule: a frame around it would be 1 KiB for nothing.
  if (algorithm->shares_of(shares, lane, lanes) == 1)
    return algorithm->make(call, view, algorithm->share(0, shares, lane, lanes));
  return in_turn(algorithm, call, view, shares, lane, lanes);
}

}  // namespace gccl
