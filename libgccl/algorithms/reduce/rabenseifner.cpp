// Rabenseifner's reduce: recursive halving reduce-scatter, then a binomial gather of the parts to the root. Other n
// than powers of two use circulant rounds instead of a fold (halving.hpp). Scratch: one vector on every rank but the
// root.
#include "libgccl/algorithms/parts/halving.hpp"
#include "libgccl/algorithms/parts/sums.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/binomial_cost.hpp"
#include "libgccl/cost/bunch.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

// Number i holds part i of x; number 0 gets them all.
Schedule gather_parts(Numbering g, Region x) {
  const Count n = g.size, i = g.rank;
  for (Count distance = 1; distance < n; distance *= 2) {
    if (i & distance) {
      co_yield send(g[Rank(i - distance)], x.parts(i, std::min(distance, n - i), n));
      co_return;
    }
    if (i + distance < n)
      co_yield recv(g[Rank(i + distance)], x.parts(i + distance, std::min(distance, n - i - distance), n));
  }
}

Cost reduce_rabenseifner_over(Rank n, double bytes, const Paths& p) {
  const bool near_first = std::has_single_bit(n);
  const Cost busiest = p.channels() * bytes * p.gathered_halving_ns_per_byte();
  if (near_first && p.model().links_alone) return busiest;
  const Rounds scattered = halving_rounds(n, bytes / n, true, p);
  Cost total = scattered.end();
  if (!near_first && bytes >= n * p.model().element_bytes)
    return std::max(busiest, total + binomial_up(n, {.block = bytes / n}, false, p));
  const double filled = std::min(double(n), bytes / p.model().element_bytes);  // parts with an element to gather
  Bunch bunch = scattered.bunch();
  for (Count parts = 1; double(parts) < filled; parts *= 2)
    total = bunch.pass(total, p.at(near_first ? n / (2 * parts) : parts),
                       std::min(double(parts), filled - double(parts)) * bytes / filled);
  return std::max(busiest, total);
}

Schedule rabenseifner_reduce(Call c, View v, Share mine) {
  const Numbering near = Numbering::from(v, c.root).near_first();
  const Region in = input_of(c, v, mine), sum = sums_of(c, v, mine);
  co_yield halving_reduce_scatter(near, in, sum, sum.part(near.rank, near.size));
  co_yield gather_parts(near, sum);
}

Count rabenseifner_reduce_scratch(const Call& c, const View& v, Share mine) {
  return v.all.rank == c.root ? 0 : sums_of(c, v, mine).count;
}

}  // namespace

constexpr Algorithm reduce_rabenseifner = {
    .name = "rabenseifner",
    .kind = Collective::reduce,
    .source = "Rabenseifner, \"Optimization of collective reduction operations\", ICCS 2004, section 3",
    .steps = "2 log2 n; other n: at most 3 ceil(log2 n) - 1",
    .bytes = "(3/2 - 1/n) V; other n: at most 3/2 V",
    .make = rabenseifner_reduce,
    .scratch = rabenseifner_reduce_scratch,
    .cost = vector_cost<reduce_rabenseifner_over>,
    .at_once = true,
    .rounds = true,
};

}  // namespace gccl
