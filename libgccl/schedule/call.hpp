// A Call says what a collective must do; a Share says which slice of it one schedule does.
#pragma once

#include "libgccl/schedule/group.hpp"
#include "libgccl/schedule/region.hpp"

namespace gccl {

// Elements that `from` sends to `to` in an all-to-all-v: a function over the caller's own data, never an n x n table.
using CountOf = Count (*)(const void* table, Rank from, Rank to);

struct Call {
  Collective kind;
  // Elements: of the whole vector for allreduce, broadcast, reduce and sendrecv; of one rank's block for allgather,
  // reduce_scatter, gather, scatter and alltoall; ignored by alltoallv (counts) and barrier.
  Count count = 0;
  Rank root = 0;
  bool in_place = false;
  CountOf counts = nullptr;  // alltoallv
  const void* table = nullptr;

  Count between(Rank from, Rank to) const { return kind == Collective::alltoallv ? counts(table, from, to) : count; }
};

// One slice of the work: the unit of pipelining and of lanes. Slices of a call are independent of each other.
struct Share {
  Count index = 0, of = 1;
};

// Sizes of the caller's two buffers on one rank, in elements. Without in_place both exist where they are not 0.
// In place only one buffer is given and the other's region lies inside it (NCCL's and MPI's rules):
//   allreduce, broadcast, reduce   output is the vector
//   allgather, gather (at root)    output, and the rank's own block already lies at its place in it
//   reduce_scatter                 output has ranks*count elements of input; the result lands in block `rank` of it
//   scatter (at root)              input; the root's block stays where it is
//   alltoall, alltoallv, sendrecv  output holds the input and is overwritten (counts must be symmetric in alltoallv)
Count input_count(const Call&, Rank ranks, Rank rank);
Count output_count(const Call&, Rank ranks, Rank rank);

// The region that holds this rank's input / gets this rank's output, resolved for in_place; count 0 where the rank has
// none. Algorithms use these instead of naming buffers, so no step ever touches aliased memory under two names.
Region input_of(const Call&, Rank ranks, Rank rank);
Region output_of(const Call&, Rank ranks, Rank rank);

// The share's slice of a vector; the share's slice of each of n equal blocks that lie side by side in `whole`.
inline Region slice(Region whole, Share s) { return whole.part(s.index, s.of); }
inline Blocks slice(Region whole, Count n, Share s) {
  const Count each = n ? whole.count / n : 0;
  const Region first = Region{whole.buffer, whole.offset, each}.part(s.index, s.of);
  return {first.buffer, first.offset, each, first.count};
}

}  // namespace gccl
