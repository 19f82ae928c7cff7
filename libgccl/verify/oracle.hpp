// What a collective must leave behind, element by element, from its definition alone (definition.hpp): the reference
// that both the prover and the simulator's payload check hold a run against.
#pragma once

#include <vector>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/schedule/call.hpp"

namespace gccl {

// Elements are hashes and reductions are wrap-around sums of them, so a missing, doubled, misplaced or foreign
// contribution changes the result with certainty for all practical purposes (2^-64 per element).
using OracleElement = std::uint64_t;

class Oracle {
 public:
  // O(ranks * count) for allreduce and reduce, whose sums are made here once, else O(1).
  Oracle(const Call& call, Rank ranks, std::uint64_t seed);

  // What rank `from` puts at position k of its block for rank `block`; block is 0 where an input has no blocks.
  OracleElement value(Rank from, Rank block, Count k) const { return at(base(from, block), k); }

  // Rank r's whole input as the definition has it, O(size + ranks). `out` must hold input_of(call, ranks, r).count
  // elements; in place that region lies within another buffer, which is the caller's business. Gaps between blocks stay
  // as they are, here and in output().
  void input(Rank r, std::span<OracleElement> out) const;
  // Rank r's whole output as it must be, O(size + ranks) and for reduce_scatter(v) O(size * ranks). `out` must hold
  // output_of(call, ranks, r).count elements.
  void output(Rank r, std::span<OracleElement> out) const;

 private:
  static OracleElement at(OracleElement base, Count k) { return splitmix::mix(base + k * splitmix::kGolden); }
  OracleElement base(Rank from, Rank block) const { return at(seed_, (OracleElement(from) << 32) | block); }
  // What `from` contributes to the block of rank `to`; what all ranks contribute to a block, summed.
  void fill(std::span<OracleElement> block, Rank from, Rank to) const;
  std::vector<OracleElement> sum(Rank block, Count count) const;

  Call call_;
  Rank ranks_;
  OracleElement seed_;
  std::vector<OracleElement> sums_;  // allreduce and reduce
};

}  // namespace gccl
