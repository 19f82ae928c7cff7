// How a recursive algorithm numbers ranks: those of a group, or all from a root on; nearest first, or only some of
// them.
#pragma once

#include <bit>

#include "libgccl/algorithms/parts/root_order.hpp"

namespace gccl {

// Members numbered 0 .. size-1; `rank` is this rank's number. Numbers map to ranks by arithmetic, no table.
struct Numbering {
  Group group;
  Rank size = 0, rank = 0;
  bool rooted = false;  // positions are those of `order`, not of the group
  RootOrder order = {};
  Rank folded = 0;    // of the first 2*folded positions only the odd ones have a number
  unsigned bits = 0;  // numbers are bit-reversed positions of that many bits

  // The rank with number i. Requires i < size.
  Rank operator[](Rank i) const {
    if (bits) i = reversed(i, bits);
    if (folded) i = i < folded ? 2 * i + 1 : i + folded;
    return rooted ? order[i] : group[i];
  }

  // Members in group order.
  static Numbering from(const Group& g) { return {.group = g, .size = g.size, .rank = g.rank}; }
  // All ranks, the root first.
  static Numbering from(const View& v, Rank root) {
    const RootOrder order(v, root);
    return {.group = v.all, .size = v.all.size, .rank = order.position(v.all.rank), .rooted = true, .order = order};
  }

  // The same, but bit-reversed when the size is a power of two: numbers n/2 apart, which exchange the most in a
  // recursive halving, are then neighbours (n/4: two positions apart, and so on).
  Numbering near_first() const {
    Numbering x = *this;
    if (!std::has_single_bit(size)) return x;
    x.bits = unsigned(std::countr_zero(size));
    if (x.bits) x.rank = reversed(x.rank, x.bits);
    return x;
  }

  // The largest power of two of members that is left when the first positions are folded pairwise, even into odd.
  // `rank` is meaningless on the members without a number.
  static Numbering survivors(const Group& g) {
    const Rank size = std::bit_floor(g.size), folded = g.size - size;
    const Rank rank = g.rank < 2 * folded ? g.rank / 2 : g.rank - folded;
    return {.group = g, .size = size, .rank = rank, .folded = folded};
  }

 private:
  // Requires bits > 0 and i < 2^bits.
  static Rank reversed(Rank i, unsigned bits) {
    i = (i & 0x55555555) << 1 | (i >> 1 & 0x55555555);
    i = (i & 0x33333333) << 2 | (i >> 2 & 0x33333333);
    i = (i & 0x0f0f0f0f) << 4 | (i >> 4 & 0x0f0f0f0f);
    return __builtin_bswap32(i) >> (32 - bits);
  }
};

// Of n = 2^k + e ranks the first 2e act as e pairs: position i of the power of two stands for the ranks
// doubling_begin(e, i) .. doubling_begin(e, i + 1) - 1, and the first of them speaks for them.
inline Rank doubling_begin(Rank e, Rank i) { return i < e ? 2 * i : i + e; }

}  // namespace gccl
