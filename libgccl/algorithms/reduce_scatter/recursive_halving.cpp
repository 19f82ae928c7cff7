// Recursive halving reduce-scatter, for any number of ranks: other n than powers of two by circulant rounds, of one
// message or two (halving.hpp). Scratch: n blocks. Slices of blocks are first packed side by side.
#include "libgccl/algorithms/parts/halving.hpp"
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Cost reduce_scatter_recursive_halving_over(Rank n, double block, const Paths& p) {
  return halving_reduce_scatter_cost(n, block, false, p);
}

Schedule recursive_halving_reduce_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size;
  const Blocks in = input_blocks(c, v, mine);
  const Region out = output_of(c, v, mine);
  const Blocks packed{Buffer::scratch, 0, in.count, in.count};
  if (!in.dense() && n > 1)
    for (Rank i = 0; i < n; ++i) co_yield copy(in[i], packed[i]);
  const Region have = in.dense() || n == 1 ? Region{in.buffer, in.offset, n * in.count} : packed.run(0, n);
  co_yield halving_reduce_scatter(Numbering::from(v.all), have, packed.run(0, n), out);
}

Count recursive_halving_reduce_scatter_scratch(const Call& c, const View& v, Share mine) {
  const Rank n = v.all.size;
  return n > 1 ? n * input_blocks(c, v, mine).count : 0;
}

}  // namespace

constexpr Algorithm reduce_scatter_recursive_halving = {
    .name = "recursive_halving",
    .kind = Collective::reduce_scatter,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.4",
    .steps = "log2 n; other n: at most 2 ceil(log2 n) - 1",
    .bytes = "(n-1) b",
    .make = recursive_halving_reduce_scatter,
    .scratch = recursive_halving_reduce_scatter_scratch,
    .cost = vector_cost<reduce_scatter_recursive_halving_over>,
    .at_once = true,
    .rounds = true,
    .packs = true,
};

}  // namespace gccl
