// Binomial tree all-reduce: a reduce to the first member, then a broadcast from it. n-1 messages in each half, the
// fewest.
#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/binomial.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {

Schedule binomial_tree_all_reduce(Group g, Region in, Region out) {
  co_yield binomial_reduce_to(Numbering::from(g), in, out);
  co_yield binomial_broadcast_from(Numbering::from(g), out, out);
}

Cost binomial_tree_all_reduce_cost(Rank n, double bytes, const Paths& p) {
  return binomial_reduce_to_cost(n, bytes, p) + binomial_broadcast_from_cost(n, bytes, p);
}

namespace {

// The first rank has a message from, and later to, each of its children, and combines those that come. Of two ranks
// each goes on with its sends while its receives wait, so both windows hold chunks.
Cost binomial_tree_all_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Paths p(v, m);
  const double bytes = m.bytes(double(c.count));
  const Cost one = binomial_tree_all_reduce_cost(v.all.size, bytes, p),
             block = binomial_tree_all_reduce_cost(v.all.size, bytes * double(s.lanes), p);
  const Cost handling = std::max(m.exchange_gap_ns(), m.combine(bytes));
  // Some chunks go up while others come down, and a NIC that several cards use may carry both.
  const Cost busiest = std::max({binomial_interval(v.all.size, {.vector = bytes}, handling, Tree::up, p),
                                 binomial_interval(v.all.size, {.vector = bytes}, handling, Tree::down, p),
                                 bytes * p.binomial_both_ns_per_byte()});
  const double children = std::bit_width(v.all.size - 1), steps = v.all.size == 2 ? 1 : 2 * children;
  const Cost handled = one + double(s.lanes - 1) * children * m.exchange_gap_ns();
  return after_in_step(meeting(one, busiest, chunks_in_flight(s, steps)), one, std::max(block, handled), s);
}

}  // namespace

constexpr Algorithm allreduce_binomial_tree = {
    .name = "binomial_tree",
    .kind = Collective::allreduce,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), sections 4.2 and 4.5",
    .steps = "2 ceil(log2 n)",
    .bytes = "ceil(log2 n) V",
    .make = all_reduce<binomial_tree_all_reduce>,
    .cost = vector_cost<binomial_tree_all_reduce_cost>,
    .interval = binomial_tree_all_reduce_interval,
};

}  // namespace gccl
