// Dissemination barrier: in round k every rank signals the rank 2^k after it. Any n. Only share 0 has steps.
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

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

}  // namespace

constexpr Algorithm barrier_dissemination = {
    .name = "dissemination",
    .kind = Collective::barrier,
    .source = "Hensgen, Finkel, Manber, \"Two algorithms for barrier synchronization\", IJPP 17 (1988)",
    .steps = "ceil(log2 n)",
    .bytes = "0",
    .make = dissemination_barrier,
    .cost = dissemination_barrier_cost,
};

}  // namespace gccl
