#include "libgccl/algorithms/all_reduce_torus2d.hpp"

#include "libgccl/algorithms/two_level.hpp"

namespace gccl {

Schedule torus2d_all_reduce(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank, x = v.columns, y = n / x;
  const Group row{.size = x, .rank = r % x, .first = r / x * x};
  const Group column{.size = y, .rank = r / x, .first = r % x, .stride = x};
  return two_level_all_reduce(&kInnerRing, &kOuterRing, row, column, slice(input_of(c, n, r), mine),
                              slice(output_of(c, n, r), mine));
}

bool torus2d_all_reduce_fits(const Call&, const View& v) { return v.columns > 0 && v.all.size % v.columns == 0; }

Cost torus2d_all_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  if (c.count == 0) return 0;
  if (v.all.size == 1) return c.in_place ? 0 : m.copy(bytes);
  // A row leaves its node at one place, columns at all.
  const Hop& along_row = v.nodes > 1 && v.columns > v.rails ? m.net : m.node;
  return two_level_all_reduce_cost(kInnerRing, kOuterRing, v.columns, v.all.size / v.columns, bytes, along_row,
                                   m.at(v, v.columns), m);
}

}  // namespace gccl
