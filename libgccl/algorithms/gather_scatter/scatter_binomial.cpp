// Binomial scatter: a subtree's blocks go down as one message and are divided on the way. Positions count from the
// root, cyclically; the rank at position u sends one block less than its subtree of min(lowest bit of u, n - u). A
// subtree that passes rank n-1 leaves the root as two messages, slices one by one. Scratch: the subtree's blocks on
// ranks between the root and the leaves.
#include <bit>

#include "libgccl/algorithms/parts/subtree.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"

namespace gccl {
namespace {

// Every rank's slices of the n blocks, as they lie at the root.
Blocks blocks_scattered(const Call& c, Rank n, Share mine) { return slice(input_of(c, n, c.root), n, mine); }

Schedule binomial_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region out = output_of(c, v, mine);
  const Blocks in = blocks_scattered(c, n, mine);
  const Subtree tree = Subtree::of(n, c.root, r);
  const Count top = std::bit_ceil(tree.size) / 2;  // the largest child's distance; 0 for a leaf
  if (r == c.root) {
    for (Count d = top; d >= 1; d /= 2) {
      const Run run = tree.child(d).run(in);
      for (Count i = 0; i < run.messages(); ++i) co_yield send(tree.child(d).rank(), run.message(i));
    }
    co_yield copy(in[r], out);
    co_return;
  }
  const Blocks work = packed(in);
  const Region whole = tree.size > 1 ? work.run(0, tree.size) : out;
  const Run run = tree.run(in);
  if (!tree.below_root()) co_yield recv(tree.parent(), whole);
  for (Count i = 0; tree.below_root() && i < run.messages(); ++i) co_yield recv(c.root, packed_message(run, whole, i));
  for (Count d = top; d >= 1; d /= 2) co_yield send(tree.child(d).rank(), work.run(d, tree.child(d).size));
  if (tree.size > 1) co_yield copy(work[0], out);
}

Count binomial_scatter_scratch(const Call& c, const View& v, Share mine) {
  const Rank n = v.all.size;
  const Count size = Subtree::of(n, c.root, v.all.rank).size;
  return size == 1 || v.all.rank == c.root ? 0 : size * blocks_scattered(c, n, mine).count;
}

Cost binomial_scatter_cost(const Call& c, const View& v, const CostModel& m) {
  const Count n = v.all.size;
  const double block = m.bytes(double(c.count));
  // An inner member copies its own block, which it has with its subtree's, concurrently with its last child's message.
  return std::max(binomial_down(Rank(n), {.block = block}, Paths(v, m)), m.copy(n > 2 || !c.in_place ? block : 0));
}

Cost binomial_scatter_slices(const View& v, const CostModel& m, const Slicing& s) {
  return double(s.shares) * double(v.all.size - 1) * m.overhead_ns;
}

}  // namespace

constexpr Algorithm scatter_binomial = {
    .name = "binomial",
    .kind = Collective::scatter,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), on broadcast (van de Geijn's scatter)",
    .steps = "at most ceil(log2 n) + 1",
    .bytes = "(n-1) b",
    .make = binomial_scatter,
    .scratch = binomial_scatter_scratch,
    .cost = binomial_scatter_cost,
    .slices = binomial_scatter_slices,
};

}  // namespace gccl
