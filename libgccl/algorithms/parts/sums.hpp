// What the reduce algorithms share: where a rank gathers its sums.
#pragma once

#include "libgccl/schedule/call.hpp"
#include "libgccl/schedule/group.hpp"

namespace gccl {

// The share's vector of partial sums: the output at the root, scratch elsewhere, as only the root has an output.
inline Region sums_of(const Call& c, const View& v, Share mine) {
  const Region in = input_of(c, v, mine);
  return v.all.rank == c.root ? output_of(c, v, mine) : Region{Buffer::scratch, 0, in.count};
}

}  // namespace gccl
