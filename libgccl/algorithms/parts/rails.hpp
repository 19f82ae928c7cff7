// Nodes of different sizes: places beyond the rails share one, place p that of place p mod rails.
#pragma once

#include "libgccl/schedule/group.hpp"

namespace gccl {

// How many ranks of a node of that size share its first rail, as many as on any.
inline Rank on_first_rail(const View& v, Rank size) { return (size + v.rails - 1) / v.rails; }
// The same of all nodes together; of the smallest one it is one.
inline Rank on_first_rail(const View& v) {
  if (v.uniform()) return v.nodes;
  if (!v.members) return (v.nodes - 1) * on_first_rail(v, v.fullest) + 1;
  Rank all = 0;
  for (Rank k = 0; k < v.nodes; ++k) all += on_first_rail(v, v.begin[k + 1] - v.begin[k]);
  return all;
}

}  // namespace gccl
