// What each rank sends to each other one in an all-to-all-v: a function, never an n x n table.
#pragma once

#include <optional>

#include "libgccl/schedule/call.hpp"
#include "sim/json/reader.hpp"

namespace gccl::sim {

// "counts": {"distribution": ..., "seed": ...}
//   uniform  every block is the mean
//   random   from 0 to twice the mean, drawn for each pair
//   skewed   receiver k gets a share ~ 1/k (Zipf, exponent 1) of what everyone sends: popular experts; the popular ones
//            are spread over the ranks
struct Distribution {
  enum class Kind : std::uint8_t { uniform, random, skewed } kind = Kind::uniform;
  std::optional<std::uint64_t> seed;  // absent: the scenario's
};

Distribution read_distribution(const json::Node& node);

// The distribution on one communicator. `mean` is in elements; each rank sends about mean * ranks of them.
class CountTable {
 public:
  // In place, counts must be symmetric: random draws once for both directions. Requires !(in_place && skewed).
  CountTable(const Distribution& distribution, Count mean, Rank ranks, bool in_place, std::uint64_t seed);

  Count operator()(Rank from, Rank to) const;
  // Call::counts; `table` is a CountTable.
  static Count count_of(const void* table, Rank from, Rank to) {
    return (*static_cast<const CountTable*>(table))(from, to);
  }

 private:
  Distribution::Kind kind_;
  bool symmetric_;
  Count mean_;
  Rank ranks_;
  std::uint64_t seed_;
  Rank stride_ = 1;      // skewed: popularity of rank r is 1 / (1 + (r * stride + seed) mod ranks)
  double harmonic_ = 1;  // sum of 1/k for k = 1 .. ranks
};

}  // namespace gccl::sim
