// The time of an in-order binary tree's messages (algorithms/parts/binary_tree.hpp), all down from its root or all up.
#pragma once

#include <algorithm>
#include <bit>

#include "libgccl/cost/cost_model.hpp"

namespace gccl {

// A place is a power of two times an odd number, and so many places are below it on its left; what is on its right may
// be cut off, is less deep then, and waits for nobody.
struct InOrderTree {
  Count places;

  // `hop`: of a message. A place sends to its left child first, and to the right one `apart_ns` later.
  Cost down(Cost hop, Cost apart_ns) const {
    if (places < 2) return 0;
    const Count root = std::bit_floor(places);
    const Cost left = hop + InOrderTree{root - 1}.down(hop, apart_ns);
    if (places == root) return left;
    const Count beyond = places - root;
    const Cost right = beyond == root - 1 ? left : hop + InOrderTree{beyond}.down(hop, apart_ns);
    return std::max(left, apart_ns + right);
  }
  // The later of two messages waits `apart_ns` for the other one; the left one is combined first.
  Cost up(Cost hop, Cost apart_ns, Cost combining) const {
    if (places < 2) return 0;
    const Count root = std::bit_floor(places);
    const Cost left = hop + InOrderTree{root - 1}.up(hop, apart_ns, combining);
    if (places == root) return left + combining;
    const Count beyond = places - root;
    const Cost right = beyond == root - 1 ? left : hop + InOrderTree{beyond}.up(hop, apart_ns, combining);
    const Cost both = std::max(std::max(left, right), std::min(left, right) + apart_ns);
    return std::max(left + combining, both) + combining;
  }
};

}  // namespace gccl
