// A Call says what a collective must do; a Share says which slice of it one schedule does.
#pragma once

#include "libgccl/schedule/group.hpp"
#include "libgccl/schedule/region.hpp"

namespace gccl {

// Length of a block in elements, a function over the caller's own data, never an n x n table:
//   alltoallv        of what `from` sends to `to`
//   allgatherv       of the block of `from`; `to` is 0
//   reduce_scatterv  of the block that `to` gets; `from` is 0
using CountOf = Count (*)(const void* table, Rank from, Rank to);

// Where the block that `rank` exchanges with `peer` begins in its input (outgoing) or output, in elements. Asked for
// the calling rank only. Blocks do not overlap; one without elements may have any place.
using PlaceOf = Count (*)(const void* table, Rank rank, Rank peer, bool outgoing);

struct Call {
  Collective kind;
  // Elements: of the whole vector for allreduce, broadcast, reduce and sendrecv; of one rank's block for allgather,
  // reduce_scatter, gather, scatter and alltoall; where counts says it, of the mean one, for plans; ignored by barrier.
  Count count = 0;
  Rank root = 0;
  bool in_place = false;
  CountOf counts = nullptr;  // alltoallv, allgatherv, reduce_scatterv
  const void* table = nullptr;
  // Null: blocks lie side by side in rank order. alltoallv; allgatherv for the output only (outgoing is never asked).
  // An alltoallv with places is a program's own call, and knows no counts but those of its rank: `counts` is asked for
  // (rank, x) and (x, rank) alone, and closed forms take `count` for the mean block, the same on all ranks.
  PlaceOf places = nullptr;

  // Elements of the block that goes from one rank to another.
  Count between(Rank from, Rank to) const {
    switch (kind) {
      case Collective::alltoallv: return counts(table, from, to);
      case Collective::allgatherv: return counts(table, from, 0);
      case Collective::reduce_scatterv: return counts(table, 0, to);
      default: return count;
    }
  }
};

// Whether it has no elements, whatever the rank; where blocks may differ their mean does not say so.
constexpr bool without_elements(const Call& c) {
  return c.count == 0 && c.kind != Collective::barrier && !has_counts(c.kind);
}

// One slice of the work: the unit of pipelining and of lanes. Slices of a call are independent of each other. `length`
// of `of` parts from `index` on.
struct Share {
  Count index = 0, of = 1, length = 1;
  Region in(Region whole) const { return length == 1 ? whole.part(index, of) : whole.parts(index, length, of); }
};

// Sizes of the caller's two buffers on one rank, in elements; with places up to the end of the furthest block. Without
// in_place both exist where they are not 0.
// In place only one buffer is given and the other's region lies inside it (NCCL's and MPI's rules):
//   allreduce, broadcast, reduce   output is the vector
//   allgather(v), gather (at root) output, and the rank's own block already lies at its place in it
//   reduce_scatter(v)              output has all blocks of input; the result lands in block `rank` of it
//   scatter (at root)              input; the root's block stays where it is
//   alltoall(v), sendrecv          output holds the input and is overwritten (in alltoallv counts must be symmetric,
//                                  and the places of the output are those of the input)
Count input_count(const Call&, Rank ranks, Rank rank);
Count output_count(const Call&, Rank ranks, Rank rank);

// The region that holds this rank's input / gets this rank's output, resolved for in_place; count 0 where the rank has
// none. Algorithms use these instead of naming buffers, so no step ever touches aliased memory under two names. With
// places a region begins at element 0 and includes the gaps between blocks. O(ranks) where blocks have different
// lengths.
Region input_of(const Call&, Rank ranks, Rank rank);
Region output_of(const Call&, Rank ranks, Rank rank);

// The longest block of an all-gather(v) or reduce-scatter(v), elements: what closed forms go by, because the rank that
// sends or receives it is busy longest. O(ranks) where blocks have different lengths.
Count largest_block(const Call&, Rank ranks);

// The share's slice of a vector; the share's slice of each of n equal blocks that lie side by side in `whole`.
inline Region slice(Region whole, Share s) { return s.in(whole); }
inline Blocks slice(Region whole, Count n, Share s) {
  const Count each = n ? whole.count / n : 0;
  const Region first = s.in({whole.buffer(), whole.offset(), each});
  return {first.buffer(), first.offset(), each, first.count};
}

// The share's slice of this rank's input and output; where these are a block for each rank, its slice of each block.
inline Region input_of(const Call& c, const View& v, Share s) { return slice(input_of(c, v.all.size, v.all.rank), s); }
inline Region output_of(const Call& c, const View& v, Share s) {
  return slice(output_of(c, v.all.size, v.all.rank), s);
}
inline Blocks input_blocks(const Call& c, const View& v, Share s) {
  return slice(input_of(c, v.all.size, v.all.rank), v.all.size, s);
}
inline Blocks output_blocks(const Call& c, const View& v, Share s) {
  return slice(output_of(c, v.all.size, v.all.rank), v.all.size, s);
}

}  // namespace gccl
