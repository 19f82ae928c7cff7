#include "libgccl/algorithms/parts/binary_tree.hpp"

namespace gccl {

TreePlace first_tree(Rank place, Rank size) {
  const Count x = place, step = x & (~x + 1);  // leaves are odd; step/2 apart from its children
  const Count up = (x & step << 1) ? x - step : x + step;
  TreePlace t;
  t.parent = Rank(up <= size ? up : x - step);  // the left neighbour is the parent of a right subtree that is cut off
  t.left = Rank(step > 1 ? x - step / 2 : 0);
  Count down = step / 2;
  while (down > 0 && x + down > size) down /= 2;
  t.right = Rank(down > 0 ? x + down : 0);
  return t;
}

TreePlace second_tree(Rank place, Rank size) {
  const bool mirror = size % 2 == 0;
  const auto there = [=](Rank x) { return mirror ? size + 1 - x : x == 1 ? size : x - 1; };
  const auto back = [=](Rank x) { return x == 0 ? 0 : mirror ? size + 1 - x : x == size ? 1 : x + 1; };
  const TreePlace t = first_tree(there(place), size);
  return {back(t.parent), back(t.left), back(t.right)};
}

}  // namespace gccl
