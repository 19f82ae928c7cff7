#include "libgccl/schedule/call.hpp"

#include <algorithm>

namespace gccl {
namespace {

using enum Collective;

// The end of the furthest of the rank's blocks in its input (outgoing) or output.
Count blocks_end(const Call& c, Rank n, Rank r, bool outgoing) {
  Count end = 0;
  for (Rank p = 0; p < n; ++p) {
    const Count size = outgoing ? c.between(r, p) : c.between(p, r);
    if (size) end = c.places ? std::max(end, c.places(c.table, r, p, outgoing && !c.in_place) + size) : end + size;
  }
  return end;
}

// Where the rank's own block begins among all blocks.
Count own_place(const Call& c, Rank r) {
  if (c.kind == allgather || c.kind == gather || c.kind == scatter || c.kind == reduce_scatter) return r * c.count;
  if (c.places) return c.places(c.table, r, r, false);
  Count at = 0;
  for (Rank p = 0; p < r; ++p) at += c.kind == allgatherv ? c.between(p, r) : c.between(r, p);
  return at;
}

// Elements of input and output by the collective's definition, before in_place folds one into the other.
Count natural_input(const Call& c, Rank n, Rank r) {
  switch (c.kind) {
    case broadcast: return r == c.root ? c.count : 0;
    case scatter: return r == c.root ? n * c.count : 0;
    case reduce_scatter:
    case alltoall: return n * c.count;
    case alltoallv:
    case reduce_scatterv: return blocks_end(c, n, r, true);
    case allgatherv: return c.between(r, r);
    case barrier: return 0;
    default: return c.count;
  }
}

Count natural_output(const Call& c, Rank n, Rank r) {
  switch (c.kind) {
    case reduce: return r == c.root ? c.count : 0;
    case gather: return r == c.root ? n * c.count : 0;
    case allgather:
    case alltoall: return n * c.count;
    case alltoallv:
    case allgatherv: return blocks_end(c, n, r, false);
    case reduce_scatterv: return c.between(r, r);
    case barrier: return 0;
    default: return c.count;
  }
}

// Which buffer an in-place call leaves on this rank.
bool input_in_output(const Call& c, Rank r) {
  if (!c.in_place) return false;
  return !(c.kind == gather || c.kind == reduce || c.kind == scatter || c.kind == broadcast) || r == c.root;
}

}  // namespace

Region input_of(const Call& c, Rank n, Rank r) {
  const Count size = natural_input(c, n, r);
  if (!input_in_output(c, r) || c.kind == scatter) return {Buffer::input, 0, size};
  const bool within = c.kind == allgather || c.kind == gather || c.kind == allgatherv;
  return {Buffer::output, within && size ? own_place(c, r) : 0, size};
}

Region output_of(const Call& c, Rank n, Rank r) {
  const Count size = natural_output(c, n, r);
  if (!input_in_output(c, r)) return {Buffer::output, 0, size};
  if (c.kind == scatter) return {Buffer::input, own_place(c, r), size};
  const bool within = c.kind == reduce_scatter || c.kind == reduce_scatterv;
  return {Buffer::output, within ? own_place(c, r) : 0, size};
}

Count input_count(const Call& c, Rank n, Rank r) {
  const bool folded = input_in_output(c, r) && c.kind != scatter;
  return folded ? 0 : natural_input(c, n, r);
}

Count output_count(const Call& c, Rank n, Rank r) {
  if (!input_in_output(c, r)) return natural_output(c, n, r);
  if (c.kind == scatter) return 0;
  return c.kind == reduce_scatter || c.kind == reduce_scatterv ? natural_input(c, n, r) : natural_output(c, n, r);
}

Count largest_block(const Call& c, Rank ranks) {
  if (!has_counts(c.kind)) return c.count;
  Count largest = 0;
  for (Rank r = 0; r < ranks; ++r) largest = std::max(largest, c.between(r, r));
  return largest;
}

}  // namespace gccl
