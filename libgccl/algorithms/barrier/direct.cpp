// Direct barrier: every rank signals each other rank, then awaits the signal of each. No signal waits for another: one
// latency, for few ranks, against ceil(log2 n) latencies of dissemination. Only share 0 has steps.
#include "libgccl/algorithms/parts/few_ranks.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule direct_barrier(Call, View v, Share mine) {
  if (mine.index != 0) co_return;
  for (std::int64_t s = 1; s < v.all.size; ++s) co_yield signal(v.all[v.all.rank + s]);
  for (std::int64_t s = 1; s < v.all.size; ++s) co_yield await(v.all[v.all.rank - s]);
}

Cost direct_barrier_cost(const Call&, const View& v, const CostModel& m) { return all_pairs(v, m, 0, 1); }

}  // namespace

constexpr Algorithm barrier_direct = {
    .name = "direct",
    .kind = Collective::barrier,
    .source = "Hoefler, Mehlan, Mietke, Rehm, IPDPS 2006 (n-way dissemination, in one round)",
    .steps = "n-1",
    .bytes = "0",
    .make = direct_barrier,
    .fits = few_ranks,
    .limit = kFewRanksLimit,
    .cost = direct_barrier_cost,
};

}  // namespace gccl
