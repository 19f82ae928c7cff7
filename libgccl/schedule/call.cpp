#include "libgccl/schedule/call.hpp"

#include <algorithm>

#include "libgccl/schedule/definition.hpp"

namespace gccl {
namespace {

using enum Collective;

// The end of the furthest of the rank's blocks in its input (outgoing) or output.
Count blocks_end(const Call& c, Rank n, Rank r, bool outgoing) {
  Count furthest = 0;
  each_block(c, n, r, outgoing, [&](Count begin, Count count, Rank) { furthest = std::max(furthest, begin + count); });
  return furthest;
}

// Where the rank's own block begins among all blocks.
Count own_place(const Call& c, Rank r) {
  if (c.kind == allgather || c.kind == gather || c.kind == scatter || c.kind == reduce_scatter) return r * c.count;
  if (c.places) return c.places(c.table, r, r, false);
  Count at = 0;
  for (Rank p = 0; p < r; ++p) at += c.kind == allgatherv ? c.between(p, r) : c.between(r, p);
  return at;
}

// Elements of input (outgoing) or output by the collective's definition, before in_place folds one into the other.
Count natural(const Call& c, Rank n, Rank r, bool outgoing) {
  const Held& held = outgoing ? definition(c.kind).input : definition(c.kind).output;
  if (!held.by(r, c.root)) return 0;
  switch (held.extent) {
    case Extent::none: return 0;
    case Extent::vector: return c.count;
    case Extent::own: return c.between(r, r);
    case Extent::every: return has_counts(c.kind) ? blocks_end(c, n, r, outgoing) : n * c.count;
  }
  return 0;
}
Count natural_input(const Call& c, Rank n, Rank r) { return natural(c, n, r, true); }
Count natural_output(const Call& c, Rank n, Rank r) { return natural(c, n, r, false); }

// Which buffer an in-place call leaves on this rank.
bool input_in_output(const Call& c, Rank r) {
  if (!c.in_place) return false;
  return !has_root(c.kind) || r == c.root;
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
