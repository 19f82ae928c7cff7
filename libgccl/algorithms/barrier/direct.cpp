#include "libgccl/algorithms/barrier/direct.hpp"

#include "libgccl/cost/pipelined.hpp"

namespace gccl {

Schedule direct_barrier(Call, View v, Share mine) {
  if (mine.index != 0) co_return;
  for (std::int64_t s = 1; s < v.all.size; ++s) co_yield signal(v.all[v.all.rank + s]);
  for (std::int64_t s = 1; s < v.all.size; ++s) co_yield await(v.all[v.all.rank - s]);
}

Cost direct_barrier_cost(const Call&, const View& v, const CostModel& m) { return all_pairs(v, m, 0, 1); }

}  // namespace gccl
