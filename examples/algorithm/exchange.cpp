// Exchange all-gather: in step s every rank swaps blocks with the rank whose number differs in the bits of s. No step
// depends on an earlier one, and the two of a pair use both directions of their link at once. For a power of two of
// ranks on one node.
#include <bit>

#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule exchange_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  const Blocks out = output_blocks(c, v, mine);
  for (Rank s = 1; s < n; ++s) {
    co_yield send(r ^ s, in);
    co_yield recv(r ^ s, out[r ^ s]);
  }
  co_yield copy(in, out[r]);
}

bool exchange_all_gather_fits(const Call&, const View& v) { return v.nodes == 1 && std::has_single_bit(v.all.size); }

Cost exchange_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count));
  return std::max(all_pairs(v, m, block), m.own_copy(c, block));
}

}  // namespace

constexpr Algorithm allgather_exchange = {
    .name = "exchange",
    .kind = Collective::allgather,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), on all-to-all of long messages",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = exchange_all_gather,
    .fits = exchange_all_gather_fits,
    .limit = "it is for a power of two of ranks on one node",
    .cost = exchange_all_gather_cost,
};

}  // namespace gccl
