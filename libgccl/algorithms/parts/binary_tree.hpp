// The two in-order binary trees of the double binary tree algorithms.
// Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35
// (2009), section 2.
//
//   first tree of 7:      4          second tree: the first one mirrored (even sizes) or shifted by one (odd sizes),
//                     2       6      so that no place has children in both.
//                    1 3     5 7
#pragma once

#include "libgccl/schedule/types.hpp"

namespace gccl {

// A place of a tree of places 1 .. size; 0 where there is none. The left subtree is at least as deep as the right one.
struct TreePlace {
  Rank parent = 0, left = 0, right = 0;
  bool leaf() const { return left == 0; }
};

// Requires 1 <= place <= size. At most floor(log2 size) edges from the root down.
TreePlace first_tree(Rank place, Rank size);
TreePlace second_tree(Rank place, Rank size);

}  // namespace gccl
