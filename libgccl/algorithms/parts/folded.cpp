#include "libgccl/algorithms/parts/folded.hpp"

namespace gccl {

Schedule folded_all_reduce(Group g, Region in, Region out, SurvivorsAllReduce core) {
  const Numbering survivors = Numbering::survivors(g);
  const bool paired = g.rank < 2 * survivors.folded;
  const Rank partner = g[g.rank ^ 1];
  if (paired && g.rank % 2 == 0) {
    co_yield send(partner, in);
    co_yield recv(partner, out);
    co_return;
  }
  if (paired) co_yield recv_reduce(partner, in, out);
  co_yield core(survivors, paired ? out : in, out);
  if (paired) co_yield send(partner, out);
}

// Of many chunks some come while others go, over the same links the other way.
Cost fold_cost(Rank n, double bytes, const Paths& p) {
  if (std::has_single_bit(n)) return 0;
  return (p.model().links_alone ? 1 : 2) * p.at(1)(bytes) + p.model().combine(bytes);
}

}  // namespace gccl
