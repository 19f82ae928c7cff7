// Recursive halving and its mirror image, for any number of ranks: the parts of Rabenseifner's algorithms.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4, where n is a power of two; else the circulant pattern of
// Traeff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", arXiv:2410.14234 (2024), algorithm 1, which
// needs no fold: ceil(log2 n) rounds and n-1 parts sent per rank for every n.
#pragma once

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/rounds.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// Reduces g.size near-equal parts: afterwards `mine` is part g.rank of the sum of all members' `in`. Partial sums are
// kept in `work`, which has the count of `in` and may be `in` itself; `mine` may be `work`'s part g.rank.
// ceil(log2 n) rounds of one message, or two where a round's parts wrap around the end (never for a power of two).
// (n-1)/n of the vector sent per rank.
Schedule halving_reduce_scatter(Numbering g, Region in, Region work, Region mine);
// The same rounds backwards: completes a vector of which the member with number i holds part i.
Schedule doubling_all_gather(Numbering g, Region x);

// The part distance over which round k sends, and how many parts; numbered far first, or not by a power of two.
Span halving_span(Rank n, unsigned k);

// Nanoseconds, of vectors of n * part_bytes. near_first: numbered as Numbering::near_first does.
Rounds halving_rounds(Rank n, double part_bytes, bool near_first, const Paths& p);
Cost halving_reduce_scatter_cost(Rank n, double part_bytes, bool near_first, const Paths& p);
// Of both, one after the other.
Cost halving_all_reduce_cost(Rank n, double part_bytes, bool near_first, const Paths& p);

}  // namespace gccl
