#include "libgccl/algorithms/parts/two_level.hpp"

#include "libgccl/algorithms/parts/halving.hpp"

namespace gccl {

Schedule halving_over(Group g, Region in, Region out) {
  return halving_reduce_scatter(Numbering::from(g), in, out, out.part(g.rank, g.size));
}
Schedule doubling_over(Group g, Region x) { return doubling_all_gather(Numbering::from(g), x); }
Cost halving_over_cost(Rank n, double bytes, const Paths& p) { return halving_all_reduce_cost(n, bytes / n, false, p); }

Schedule pairwise_over(Group g, Region in, Region out) { return pairwise_reduce_scatter_over(g, Turns(g), in, out); }
Schedule pairwise_gather_over(Group g, Region x) { return pairwise_all_gather_over(g, Turns(g), x); }

namespace {

Schedule alone(Region in, Region out) { co_yield copy(in, out); }

// Each part is made before it is yielded: what g++ needs within a co_yield stays in the frame, here 250 bytes.
Schedule both_levels(const Inner* inner_by, const Outer* outer_by, Group inner, Group outer, Region in, Region out) {
  Schedule part = inner_by->reduce_scatter(inner, in, out);
  co_yield std::move(part);
  if (outer.size > 1) {
    const Region mine = out.part(inner.rank, inner.size);
    part = outer_by->all_reduce(outer, mine, mine);
    co_yield std::move(part);
  }
  part = inner_by->all_gather(inner, out);
  co_yield std::move(part);
}

}  // namespace

Schedule two_level_all_reduce(const Inner* inner_by, const Outer* outer_by, Group inner, Group outer, Region in,
                              Region out) {
  if (inner.size > 1) return both_levels(inner_by, outer_by, inner, outer, in, out);
  return outer.size > 1 ? outer_by->all_reduce(outer, in, out) : alone(in, out);
}

Cost two_level_all_reduce_cost(const Inner& inner_by, const Outer& outer_by, Rank inner, Rank outer, double bytes,
                               const CostModel& m) {
  Cost total = 0;
  if (inner > 1) total += inner_by.cost(inner, bytes, Paths(m.node, m.inside, m));
  if (outer > 1) total += outer_by.cost(outer, bytes / inner, Paths(inner > 1 ? m.net_all : m.net, m.rail, m));
  return total;
}

}  // namespace gccl
