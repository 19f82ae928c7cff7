// Plans around pairs of ranks whose link is slower than others: channels take orders in which they are not side by
// side, and an algorithm that sends over them all the same takes so much longer.
#pragma once

#include <compare>
#include <span>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl {

struct SlowPair {
  Rank a = 0, b = 0;            // in either direction
  double more_ns_per_byte = 0;  // than others'
  friend auto operator<=>(const SlowPair&, const SlowPair&) = default;
};

// The layout's orders, by channel, turned so that few of these pairs are side by side: parts of a ring are reversed,
// one for each pair, where that brings no other one together; of several ways the one that changes nodes least often,
// then the shortest. With fewer than four ranks there is no other ring, and all stays as it is. The same for the same
// arguments.
std::vector<std::vector<Rank>> orders_around(const Layout& layout, std::span<const SlowPair> pairs);

// The layout with these orders.
Layout around(const Layout& layout, std::span<const SlowPair> pairs);

class Detours {
 public:
  Detours() = default;
  // The layout outlives it.
  Detours(const Layout& layout, std::vector<SlowPair> pairs) : layout_(&layout), pairs_(std::move(pairs)) {}
  bool empty() const { return pairs_.empty(); }
  // What the call takes longer, as no other link waits for the slow ones': of the pair that costs most. 0 for calls
  // with lengths of their own, which each rank knows in part. `call` without what differs between ranks.
  Cost added_ns(const Algorithm& algorithm, const Call& call, Count lanes, double element_bytes) const;

 private:
  const Layout* layout_ = nullptr;
  std::vector<SlowPair> pairs_;
};

}  // namespace gccl
