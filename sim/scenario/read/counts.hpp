// How long each block of an all-to-all-v, all-gather-v or reduce-scatter-v is: a function, never an n x n table.
#pragma once

#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/call.hpp"
#include "sim/scenario/description/counts.hpp"

namespace gccl::sim {

Distribution read_distribution(const json::Node& node);

// The distribution on one communicator. `mean` is in elements; each rank sends about mean * ranks of them.
class CountTable {
 public:
  // symmetric (alltoallv in place): random draws once for both directions. Requires !(symmetric && skewed).
  CountTable(const Distribution& distribution, Count mean, Rank ranks, bool symmetric, std::uint64_t seed);

  Count operator()(Rank from, Rank to) const;
  // Call::counts; `table` is a CountTable.
  static Count count_of(const void* table, Rank from, Rank to) {
    return (*static_cast<const CountTable*>(table))(from, to);
  }
  // As count_of, for allgatherv, whose blocks belong to their senders.
  static Count count_from(const void* table, Rank from, Rank) { return count_of(table, 0, from); }

 private:
  Distribution::Kind kind_;
  bool symmetric_;
  Count mean_;
  Rank ranks_;
  std::uint64_t seed_;
  Rank stride_ = 1;  // skewed: popularity of rank r is 1 / (1 + (r * stride + seed) mod ranks)
  double max_;
  // skewed: so many blocks are as long as they may be; the others share `shared_` times the mean.
  Rank longest_ = 0;
  double shared_;
  double harmonic_ = 1;  // sum of 1/k over the others, k = longest_ + 1 .. ranks
};

}  // namespace gccl::sim
