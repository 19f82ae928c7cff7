// The binomial tree of gather and scatter: positions count from the root, a subtree is a run of positions.
#pragma once

#include "libgccl/algorithms/parts/run.hpp"

namespace gccl {

struct Subtree {
  Rank ranks, root;
  Rank position;  // of its top: 0 for the root
  Count size;     // positions position .. position+size-1

  static Subtree of(Rank n, Rank root, Rank rank) {
    const Rank u = rank >= root ? rank - root : rank + (n - root);
    return {n, root, u, u == 0 ? n : std::min<Count>(u & (~u + 1), n - u)};
  }
  Rank rank() const { return rank_at(position); }
  Rank parent() const { return rank_at(position & (position - 1)); }
  bool below_root() const { return (position & (position - 1)) == 0; }
  // The subtree d positions on, d a power of two below size.
  Subtree child(Count d) const { return {ranks, root, Rank(position + d), std::min(d, size - d)}; }
  // Its blocks as they lie at the root, by rank. The root and its children alike cut messages by this.
  Run run(Blocks at_root) const { return {at_root, ranks, rank(), size}; }

 private:
  Rank rank_at(Rank u) const { return u < ranks - root ? root + u : u - (ranks - root); }
};

// A run's i-th message in a packed copy of the run.
inline Region packed_message(const Run& run, Region packed, Count i) {
  return packed.sub(run.before(i) * run.blocks.count, run.message(i).count);
}

}  // namespace gccl
