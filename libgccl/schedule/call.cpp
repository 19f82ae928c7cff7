#include "libgccl/schedule/call.hpp"

namespace gccl {
namespace {

using enum Collective;

// Elements of input and output by the collective's definition, before in_place folds one into the other.
Count natural_input(const Call& c, Rank n, Rank r) {
  Count total = 0;
  switch (c.kind) {
    case broadcast: return r == c.root ? c.count : 0;
    case scatter: return r == c.root ? n * c.count : 0;
    case reduce_scatter:
    case alltoall: return n * c.count;
    case alltoallv:
      for (Rank p = 0; p < n; ++p) total += c.between(r, p);
      return total;
    case barrier: return 0;
    default: return c.count;
  }
}

Count natural_output(const Call& c, Rank n, Rank r) {
  Count total = 0;
  switch (c.kind) {
    case reduce: return r == c.root ? c.count : 0;
    case gather: return r == c.root ? n * c.count : 0;
    case allgather:
    case alltoall: return n * c.count;
    case alltoallv:
      for (Rank p = 0; p < n; ++p) total += c.between(p, r);
      return total;
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
  const Count at = c.kind == allgather || c.kind == gather ? r * c.count : 0;
  return {Buffer::output, at, size};
}

Region output_of(const Call& c, Rank n, Rank r) {
  const Count size = natural_output(c, n, r);
  if (!input_in_output(c, r)) return {Buffer::output, 0, size};
  if (c.kind == scatter) return {Buffer::input, r * c.count, size};
  return {Buffer::output, c.kind == reduce_scatter ? r * c.count : 0, size};
}

Count input_count(const Call& c, Rank n, Rank r) {
  const bool folded = input_in_output(c, r) && c.kind != scatter;
  return folded ? 0 : natural_input(c, n, r);
}

Count output_count(const Call& c, Rank n, Rank r) {
  if (!input_in_output(c, r)) return natural_output(c, n, r);
  if (c.kind == scatter) return 0;
  return c.kind == reduce_scatter ? natural_input(c, n, r) : natural_output(c, n, r);
}

}  // namespace gccl
