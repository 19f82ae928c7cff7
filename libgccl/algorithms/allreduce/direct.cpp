// Direct all-reduce: every rank sends its whole vector to each other rank and sums what it gets. No vector waits for
// another: one latency, for small vectors on few ranks. Sums are formed in the order of ranks 0, 1, ..., n-1, so all
// ranks end with the same bits.
// Scratch: n-1-r vectors on rank r > 0, which come before their turn, and in place one more on all ranks but rank 1.
// None with 2 ranks.
#include "libgccl/algorithms/parts/few_ranks.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

// The first vector of scratch, while `in` is still to be sent and the sum may not grow in its place.
bool sums_apart(const Call& c, const Group& g) { return c.in_place && g.size > 2 && g.rank != 1; }

// In round s a rank sends to the one s before it and receives from the one s after it: first from the ranks above,
// whose vectors wait in scratch (on rank 0 it is their turn), then from ranks 0, 1, ... in turn.
Schedule exchange_all(Group g, Region in, Region sum, Region early, Region out) {
  const Rank n = g.size, r = g.rank;
  const auto kept = [=](Rank p) { return early.sub((p - r - 1) * in.count, in.count); };
  if (n == 1) co_yield copy(in, out);
  for (Rank s = 1; s < n; ++s) {
    co_yield send(g[g.behind(s)], in);
    const Rank p = g.ahead(s);
    if (r == 0) {
      co_yield recv_reduce(g[p], p == 1 ? in : sum, s + 1 == n ? out : sum);
    } else if (p > r) {
      co_yield recv(g[p], kept(p));
    } else if (p > 0) {
      co_yield recv_reduce(g[p], sum);
    } else if (r == 1) {
      co_yield recv_reduce(g[p], in, out);  // two summands commute
    } else {
      co_yield recv(g[p], sum);
    }
  }
  if (r > 1) co_yield reduce(sum == out ? in : sum, out);
  for (Rank p = r + 1; r > 0 && p < n; ++p) co_yield reduce(kept(p), out);
}

// Rank 1 gets rank 0's vector last, and has all sums to form then. The order of the sums leaves the ranks no better one
// than all at one distance at a time.
Cost all_reduce_direct_over(Rank n, double bytes, const Paths& p) {
  double beta = 0;
  for (Rank s = 1; s < n; ++s) beta += p.shift(s).beta_ns_per_byte / (n - 1);
  const Hop mean{p.pairs().alpha_ns, beta};
  return pipelined(n - 1, mean, bytes, p.model().exchange_gap_ns(), 2) + (n - 1) * p.model().combine(bytes);
}

Schedule direct_all_reduce(Call c, View v, Share mine) {
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  const bool apart = sums_apart(c, v.all);
  const Region early{Buffer::scratch, apart ? in.count : 0, (v.all.size - 1 - v.all.rank) * in.count};
  return exchange_all(v.all, in, apart ? Region{Buffer::scratch, 0, in.count} : out, early, out);
}

Count direct_all_reduce_scratch(const Call& c, const View& v, Share mine) {
  const Count early = v.all.rank > 0 ? v.all.size - 1 - v.all.rank : 0;
  return (early + sums_apart(c, v.all)) * input_of(c, v, mine).count;
}

}  // namespace

constexpr Algorithm allreduce_direct = {
    .name = "direct",
    .kind = Collective::allreduce,
    .source = "the one-shot all-reduce of NVIDIA TensorRT-LLM",
    .steps = "n-1",
    .bytes = "(n-1) V",
    .make = direct_all_reduce,
    .scratch = direct_all_reduce_scratch,
    .fits = few_ranks,
    .limit = kFewRanksLimit,
    .cost = vector_cost<all_reduce_direct_over>,
};

}  // namespace gccl
