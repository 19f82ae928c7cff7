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

// The root's largest subtree: how far away its top is, how many blocks it has, and how many come to it last.
struct Largest {
  Count distance, blocks, last = 1;

  explicit Largest(Count n) {  // n > 1
    const Count half = std::bit_ceil(n) / 2, cut = n - half;
    distance = cut >= half / 2 ? half : half / 2;
    blocks = std::max(cut, half / 2);
    if (blocks == 1) return;
    const Count whole = std::bit_ceil(blocks) / 2;
    last = std::min(whole, blocks - whole);
  }
};

// The root's slices, or those of the largest subtree, a window of which a lane has on their way.
Cost binomial_gather_slices(const View& v, const CostModel& m, const Slicing& s) {
  if (v.all.size <= 1) return 0;
  const Largest largest(v.all.size);
  const double shares = double(s.shares), each = std::ceil(shares / double(s.lanes)), blocks = double(largest.blocks);
  return std::max({shares * double(v.all.size - 1) * m.receive_overhead_ns, shares * blocks * m.overhead_ns,
                   each * blocks / double(s.window) * Paths(v, m).binomial(largest.distance, Tree::up).alpha_ns});
}

// How much longer than their bytes take on the busiest link the first chunks come, and a lane's next ones. By the flow
// engine's times of 2 to 8 chunks on 8 to 512 ranks of twelve shipped clusters.
constexpr double kFirstLater = 1.01, kNextLater = 1.06;

// How long a lane of one of the root's inner subtrees has its scratch for: from what comes to its top last until that
// is sent. The longest of them.
Cost longest_cycle(Count n, double bytes, bool met, const Paths& p) {
  Cost longest = 0;
  for (Count d = 2; d + 1 < n; d *= 2) {
    const Hop& up = p.binomial(d, Tree::up);
    const double last = double(d / 2) * bytes;
    const Cost sending = last * up.beta_ns_per_byte + (met ? up.alpha_ns : p.model().overhead_ns);
    longest = std::max(longest, p.binomial(d / 2, Tree::up)(last) + sending);
  }
  return longest;
}

// Slices of blocks go to the root one by one, each as soon as it is there: of the largest subtree it waits for those
// alone that come to the top last. A lane's next chunk takes the same scratch.
Cost binomial_gather_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Rank n = v.all.size;
  if (n <= 1) return 0;
  const Paths p(v, m);
  const Largest largest(n);
  const Hop& out = p.binomial(largest.distance, Tree::up);
  const double shares = double(std::max<Count>(s.shares, 2)), lanes = double(s.lanes);
  const double chunk = m.bytes(double(c.count)), all = lanes * chunk;  // a block's bytes, of one lane and of all
  const Cost port = binomial_interval(n, {.block = all}, m.receive_overhead_ns, Tree::up, p);
  const Cost early = all * double(largest.blocks - largest.last) * out.beta_ns_per_byte;
  const Cost first = std::max(binomial_up(n, {.block = all}, false, p) - early, out.alpha_ns + kFirstLater * port);
  const Cost next = std::max({kNextLater * port, binomial_gather_slices(v, m, {s.lanes, s.lanes, s.window}),
                              longest_cycle(n, all, m.met(chunk), p)});
  const Cost total = first + (std::ceil(shares / lanes) - 1) * next;
  return std::max(0.0, total - binomial_gather_cost(c, v, m)) / (shares - 1);
}

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
    .interval = binomial_gather_interval,
    .slices = binomial_gather_slices,
};

}  // namespace gccl
