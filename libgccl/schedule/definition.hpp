// What each collective means, element by element: which blocks a rank puts in and which it must get. The prover, the
// simulator's payload check, `gccl bench` and the tests of the runtimes all go by this; tests/verify/verify_oracle.cpp
// writes the definitions out once more and holds this to them.
#pragma once

#include "libgccl/schedule/call.hpp"

namespace gccl {

// Elements of a rank's input or output, counted from where input_of() or output_of() begins.
struct Piece {
  Count begin, count;
  Rank from;   // whose input they come from; `reduced`: from all ranks' inputs, combined
  Rank block;  // which block of that input: the rank that it is for, or 0 where inputs have no blocks
  bool reduced;
};

// Calls f(begin, count, peer) for each block of the rank's input (outgoing) or output that has elements.
template <class F>
void each_block(const Call& c, Rank n, Rank r, bool outgoing, F f) {
  Count end = 0;
  for (Rank p = 0; p < n; ++p) {
    const Count count = outgoing ? c.between(r, p) : c.between(p, r);
    if (count == 0) continue;
    const Count begin = c.places ? c.places(c.table, r, p, outgoing && !c.in_place) : end;
    f(begin, count, p);
    end = begin + count;
  }
}

// Calls f(Piece) for all that rank r puts in. O(ranks).
template <class F>
void each_input(const Call& c, Rank n, Rank r, F f) {
  const Held& held = definition(c.kind).input;
  if (!held.by(r, c.root)) return;
  if (held.extent == Extent::every)
    each_block(c, n, r, true, [&](Count begin, Count count, Rank to) { f(Piece{begin, count, r, to, false}); });
  else
    f(Piece{0, held.extent == Extent::own ? c.between(r, r) : c.count, r, 0, false});
}

// Calls f(Piece) for all that rank r must get. A rank gets from each rank where its output has a block of each; else
// from the root, where the root alone has an input; else, in sendrecv, from the rank before. O(ranks).
template <class F>
void each_output(const Call& c, Rank n, Rank r, F f) {
  const Definition& d = definition(c.kind);
  if (!d.output.by(r, c.root)) return;
  if (d.output.extent == Extent::every) {
    const Rank block = d.input.extent == Extent::every ? r : 0;
    each_block(c, n, r, false, [&](Count begin, Count count, Rank from) {
      f(Piece{begin, count, from, block, false});
    });
    return;
  }
  const bool own = d.output.extent == Extent::own;
  f(Piece{0, own ? c.between(r, r) : c.count, d.input.at_root ? c.root : (r + n - 1) % n, own ? r : 0, d.reduces});
}

// Bus bandwidth = factor * bytes / time, of the bytes that nccl-tests counts (counts_blocks): what the busiest port
// carries, comparable between rank counts. https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
inline double bus_factor(Collective kind, Rank ranks) {
  const double others = double(ranks - 1) / ranks;
  if (kind == Collective::barrier) return 0;
  if (kind == Collective::allreduce) return 2 * others;
  return counts_blocks(kind) ? others : 1;
}

}  // namespace gccl
