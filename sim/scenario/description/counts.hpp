// How long the blocks of an all-to-all-v, all-gather-v or reduce-scatter-v are.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace gccl::sim {

// "counts": {"distribution": ..., "seed": ..., "max": ...}
//   uniform  every block is the mean
//   random   from 0 to twice the mean, drawn for each block
//   skewed   block k is ~ 1/k of everything (Zipf, exponent 1), in alltoallv of what everyone sends: popular experts;
//            the popular ones are spread over the ranks
// Where blocks may not be longer than `max` times the mean, skewed ones that would be are so long, and the others share
// what is left as 1/k; random ones are drawn from as much below the mean as above it.
struct Distribution {
  enum class Kind : std::uint8_t { uniform, random, skewed } kind = Kind::uniform;
  std::optional<std::uint64_t> seed;  // absent: the scenario's
  double max = std::numeric_limits<double>::infinity();
};

}  // namespace gccl::sim
