// Binomial gather: subtrees collect their blocks and pass them on as one message. Positions count from the root,
// cyclically; the rank at position u sends its subtree's min(lowest bit of u, n - u) blocks. The root receives at the
// blocks' places: a subtree that passes rank n-1 comes as two messages, slices come one by one.
// Scratch: the subtree's blocks on ranks between the root and the leaves.
#include "libgccl/algorithms/parts/subtree.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"

namespace gccl {
namespace {

// Every rank's slices of the n blocks, as they lie at the root.
Blocks blocks_gathered(const Call& c, Rank n, Share mine) { return slice(output_of(c, n, c.root), n, mine); }

Schedule binomial_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  const Blocks out = blocks_gathered(c, n, mine);
  const Subtree tree = Subtree::of(n, c.root, r);
  if (r == c.root) {
    for (Count d = 1; d < tree.size; d *= 2) {
      const Run run = tree.child(d).run(out);
      for (Count i = 0; i < run.messages(); ++i) co_yield recv(tree.child(d).rank(), run.message(i));
    }
    co_yield copy(in, out[r]);
    co_return;
  }
  const Blocks work = packed(out);
  if (tree.size > 1) co_yield copy(in, work[0]);
  for (Count d = 1; d < tree.size; d *= 2) co_yield recv(tree.child(d).rank(), work.run(d, tree.child(d).size));
  const Region whole = tree.size > 1 ? work.run(0, tree.size) : in;
  const Run run = tree.run(out);
  if (!tree.below_root()) co_yield send(tree.parent(), whole);
  for (Count i = 0; tree.below_root() && i < run.messages(); ++i) co_yield send(c.root, packed_message(run, whole, i));
}

Count binomial_gather_scratch(const Call& c, const View& v, Share mine) {
  const Rank n = v.all.size;
  const Count size = Subtree::of(n, c.root, v.all.rank).size;
  return size == 1 || v.all.rank == c.root ? 0 : size * blocks_gathered(c, n, mine).count;
}

Cost binomial_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const Count n = v.all.size;
  const double block = m.bytes(double(c.count));
  // An inner member copies its own block concurrently with its first child's message.
  return std::max(binomial_up(Rank(n), {.block = block}, false, Paths(v, m)), m.copy(n > 2 || !c.in_place ? block : 0));
}

Cost binomial_gather_slices(const View& v, const CostModel& m) { return (v.all.size - 1) * m.receive_overhead_ns; }

}  // namespace

constexpr Algorithm gather_binomial = {
    .name = "binomial",
    .kind = Collective::gather,
    .source =
        "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on minimum spanning trees",
    .steps = "at most ceil(log2 n) + 1",
    .bytes = "at most n/2 b",
    .make = binomial_gather,
    .scratch = binomial_gather_scratch,
    .cost = binomial_gather_cost,
    .slices = binomial_gather_slices,
};

}  // namespace gccl
