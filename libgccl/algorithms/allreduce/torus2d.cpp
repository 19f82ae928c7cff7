// 2-D torus all-reduce: ring reduce-scatter along the rows, ring all-reduce along the columns, ring all-gather along
// the rows of the rank grid (View::columns), which the ranks must fill.
#include "libgccl/algorithms/parts/two_level.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule torus2d_all_reduce(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank, x = v.columns, y = n / x;
  const Group row{.size = x, .rank = r % x, .first = r / x * x};
  const Group column{.size = y, .rank = r / x, .first = r % x, .stride = x};
  return two_level_all_reduce(&kInnerRing, &kOuterRing, row, column, input_of(c, v, mine), output_of(c, v, mine));
}

bool torus2d_all_reduce_fits(const Call&, const View& v) { return v.columns > 0 && v.all.size % v.columns == 0; }

Cost torus2d_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  if (c.count == 0) return 0;
  if (v.all.size == 1) return m.own_copy(c, bytes);
  const double x = v.columns, y = double(v.all.size) / x;
  const double part = bytes / (x * y);
  // Of the columns' hops, x ranks further on, those from the last x ranks of a node leave it.
  const double leaving = v.nodes <= 1 ? 0 : v.by_node ? std::min(1.0, x / v.rails) * y : y;
  const Cost column =
      y > 1 ? m.ring(y, leaving, m.shift(v, v.columns), 2 * (y - 1), part, (y - 1) * m.combine(part)) : 0;
  if (x == 1) return column;
  if (m.all.known()) {
    const bool inside = v.nodes <= 1 || (v.by_node && v.rails % v.columns == 0);
    const LinkLoads& row = inside && m.inside.known() ? m.inside : m.all;
    return row.ring(2 * (x - 1), bytes / x, (x - 1) * m.combine(bytes / x), m.met(bytes / x)) + column;
  }
  // A row leaves its nodes at one place of each; columns do at all places.
  const double crossings = v.nodes <= 1 || x <= v.rails ? 0 : v.by_node ? x / v.rails : x;
  return m.ring(x, crossings, m.net, 2 * (x - 1), bytes / x, (x - 1) * m.combine(bytes / x)) + column;
}

}  // namespace

constexpr Algorithm allreduce_torus2d = {
    .name = "torus2d",
    .kind = Collective::allreduce,
    .source = "Mikami et al., \"Massively distributed SGD\", arXiv:1811.05233 (2018), section 3",
    .steps = "2 (x-1) + 2 (y-1)",
    .bytes = "2 (n-1)/n V",
    .make = torus2d_all_reduce,
    .fits = torus2d_all_reduce_fits,
    .limit = "it needs ranks in full rows and columns, which nothing describes here",
    .cost = torus2d_all_reduce_cost,
    .staggered = true,
};

}  // namespace gccl
