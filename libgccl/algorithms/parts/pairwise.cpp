#include "libgccl/algorithms/parts/pairwise.hpp"

#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

struct Parts {
  Region whole;
  Count n;
  Region operator[](Count i) const { return whole.part(i, n); }
};

// P: Parts of one region, or Displacement.
template <class P>
Schedule reduce_parts(Group g, Turns turns, P in, Region mine) {
  if (g.size == 1) co_yield copy(in[0], mine);
  bool begun = false;
  for (Rank s = 1; s < turns.steps(); ++s) {
    const auto [to, from] = turns[s];
    if (to != g.rank) co_yield send(g[to], in[to]);
    if (from == g.rank) continue;
    co_yield recv_reduce(g[from], begun ? mine : in[g.rank], mine);
    begun = true;
  }
}

Cost exchange_parts_cost(Rank n, double part, const Paths& p) {
  return pairs_train(n - 1, p.pairs(), p.pairs_alone(), p.pairs_stretch(), part, p.model(), 2, p.channels());
}

}  // namespace

Schedule pairwise_reduce_scatter_over(Group g, Turns turns, Region in, Region out) {
  return reduce_parts(g, turns, Parts{in, g.size}, out.part(g.rank, g.size));
}

Schedule pairwise_reduce_scatter_over(Group g, Turns turns, Displacement in, Region mine) {
  return reduce_parts(g, turns, in, mine);
}

Schedule pairwise_all_gather_over(Group g, Turns turns, Region x) {
  const Region mine = x.part(g.rank, g.size);
  for (Rank s = 1; s < turns.steps(); ++s) {
    const auto [to, from] = turns[s];
    if (to != g.rank) co_yield send(g[to], mine);
    if (from != g.rank) co_yield recv(g[from], x.part(from, g.size));
  }
}

// The parts arrive one behind the other and are combined in that order, so that the window is full of what waits for
// the slowest of them.
Cost pairwise_reduce_scatter_cost(Rank n, double part, const Paths& p) {
  const double combine = p.model().combine(part);
  const Hop pairs = p.pairs_in_order();
  const Cost train = pairs_train(n - 1, pairs, p.pairs_alone(), p.pairs_stretch(), part, p.model(), 2, p.channels());
  // What channels have in flight at once arrives at once, and is combined one after the other.
  const double channels = p.channels(), last = channels > 1 ? channels * std::min(n - 1.0, kStepsInFlight / 2) : 1;
  return std::max(train + last * combine, p.pairs_alone()(part) + channels * (n - 1) * combine);
}

Cost pairwise_cost(Rank n, double bytes, const Paths& p) {
  return pairwise_reduce_scatter_cost(n, bytes / n, p) + exchange_parts_cost(n, bytes / n, p);
}

}  // namespace gccl
