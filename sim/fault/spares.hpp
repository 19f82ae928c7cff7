// Processes that wait to take the places of ranks that fail: which of them does next, for simulated ranks and real
// ones.
#pragma once

#include <optional>
#include <set>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

class Spares {
 public:
  // `number` of them, whose ranks are behind those of the job.
  Spares(Rank ranks, Rank number) : next_(ranks), end_(ranks + number) {}

  // The one that takes a place now; none: nobody is left.
  std::optional<Rank> take() {
    while (next_ < end_ && lost_.contains(next_)) ++next_;
    return next_ < end_ ? std::optional(next_++) : std::nullopt;
  }
  // It was hit before it began. True where it was about to take a place, which is for another one to take then.
  bool lose(Rank spare) {
    lost_.insert(spare);
    return spare < next_;
  }
  bool lost(Rank spare) const { return lost_.contains(spare); }

 private:
  Rank next_;
  const Rank end_;
  std::set<Rank> lost_;
};

}  // namespace gccl::sim
