#include "libgccl/algorithms/barrier/dissemination.hpp"

namespace gccl {

Schedule dissemination_barrier(Call, View v, Share mine) {
  if (mine.index != 0) co_return;
  for (std::int64_t d = 1; d < v.all.size; d *= 2) {
    co_yield signal(v.all[v.all.rank + d]);
    co_yield await(v.all[v.all.rank - d]);
  }
}

Cost dissemination_barrier_cost(const Call&, const View& v, const CostModel& m) {
  Cost t = 0;
  for (Count d = 1; d < v.all.size; d *= 2) t += m.round(v, d)(0);
  return t;
}

}  // namespace gccl
