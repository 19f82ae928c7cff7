// Recursive-doubling all-gather: what a rank holds doubles in every exchange, over doubling distances. With n = 2^k +
// e, the first 2e ranks act as e pairs: the odd one hands its block to the even one before and gets the rest after, in
// two messages.
#include <bit>

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/parts/run.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

Schedule recursive_doubling_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  const Blocks out = output_blocks(c, v, mine);
  const Rank power = std::bit_floor(n), pairs = n - power;
  const bool paired = r < 2 * pairs;

  if (paired && r % 2 == 1) {
    co_yield send(r - 1, in);
    co_yield copy(in, out[r]);
    co_yield exchange(r - 1, {out, n, 0, 0}, r - 1, {out, n, 0, r});
    co_yield exchange(r - 1, {out, n, 0, 0}, r - 1, {out, n, (r + 1) % n, n - 1 - r});
    co_return;
  }
  if (paired) {
    co_yield recv(r + 1, out[r + 1]);
    co_yield copy(in, out[r]);
  }
  const auto begin = [pairs](Rank i) { return doubling_begin(pairs, i); };
  const auto held = [begin, out, n](Rank first, Rank length) {
    return Run{out, n, begin(first), begin(first + length) - begin(first)};
  };
  const Rank position = paired ? r / 2 : r - pairs;
  for (Rank d = 1; d < power; d *= 2) {
    const Rank other = position ^ d, have = position & ~(d - 1), want = other & ~(d - 1);
    const bool own = d == 1 && !paired;  // straight from the input, while its copy is in flight
    co_yield exchange(begin(other), own ? run_of(in) : held(have, d), begin(other), held(want, d));
    if (own) co_yield copy(in, out[r]);
  }
  if (paired) {
    co_yield exchange(r + 1, {out, n, 0, r + 1}, r + 1, {out, n, 0, 0});
    co_yield exchange(r + 1, {out, n, (r + 2) % n, n - 2 - r}, r + 1, {out, n, 0, 0});
  }
  if (n == 1) co_yield copy(in, out[0]);
}

Cost recursive_doubling_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const Rank n = v.all.size, power = std::bit_floor(n);
  const double block = m.bytes(double(c.count));
  if (n > 1 && m.doubling && (m.doubling->alpha_ns > 0 || m.doubling->beta_ns_per_byte > 0))
    return std::max((*m.doubling)(block), m.own_copy(c, block));
  Cost t = 0;
  for (Rank d = 1; d < power; d *= 2) {
    const double bytes = std::min(2.0 * d, double(d) + n - power) * block;
    t += Paths(v, m).folded(n, d)(bytes);
  }
  if (n != power) t += m.at(v, 1)(block) + m.at(v, 1)((n - 1) * block);
  return std::max(t, m.own_copy(c, block));
}

}  // namespace

constexpr Algorithm allgather_recursive_doubling = {
    .name = "recursive_doubling",
    .kind = Collective::allgather,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), on all-gather",
    .steps = "log2 n; other n: floor(log2 n) + 3",
    .bytes = "(n-1) b; other n: at most 3 (n-1) b",
    .make = recursive_doubling_all_gather,
    .cost = recursive_doubling_all_gather_cost,
    .runs = true,
};

}  // namespace gccl
