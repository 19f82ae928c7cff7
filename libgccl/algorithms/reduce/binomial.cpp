// Binomial tree reduce: the rank at position u sends its sum to the position u without its lowest bit. Scratch: one
// vector on ranks between the root and the leaves.
#include "libgccl/algorithms/parts/binomial.hpp"

#include "libgccl/algorithms/parts/sums.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule binomial_reduce(Call c, View v, Share mine) {
  return binomial_reduce_to(Numbering::from(v, c.root), input_of(c, v, mine), sums_of(c, v, mine));
}

Count binomial_reduce_scratch(const Call& c, const View& v, Share mine) {
  return v.all.rank != c.root && binomial_reduce_sums(Numbering::from(v, c.root)) ? sums_of(c, v, mine).count : 0;
}

// A rank in the middle sends a chunk's sums from the lane's scratch, which the next chunk's wait for.
Cost binomial_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count));
  const Paths p(v, m);
  const Cost cycle = binomial_cycle(v.all.size, bytes, p) / double(s.lanes);
  return cycles_meet(cycle, binomial_interval(v.all.size, {.vector = bytes},
                                              std::max(m.receive_overhead_ns, m.combine(bytes)), Tree::up, p));
}

}  // namespace

constexpr Algorithm reduce_binomial = {
    .name = "binomial",
    .kind = Collective::reduce,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.5",
    .steps = "ceil(log2 n)",
    .bytes = "V",
    .make = binomial_reduce,
    .scratch = binomial_reduce_scratch,
    .cost = vector_cost<binomial_reduce_to_cost>,
    .at_once = true,
    .interval = binomial_reduce_interval,
};

}  // namespace gccl
