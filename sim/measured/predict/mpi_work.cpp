#include "sim/measured/predict/mpi_work.hpp"

#include <algorithm>
#include <bit>

namespace gccl::sim {
namespace {

// In vectors.
struct Reduction {
  Collective kind;
  std::string_view algorithm;
  double copied, allocated;
  bool several;
  double touched;
  // Where the number of ranks is no power of two, the first ones hand their vectors, or halves, to their neighbours and
  // get results from them; GCCL's halving has circulant rounds instead (halving.hpp).
  double fold_sent = 0, fold_combined = 0;
};
constexpr Reduction kReductions[] = {
    // The vector goes to memory of its own, and back where the last result came to that.
    {Collective::allreduce, "recursive_doubling", 2, 1, false, 1},
    {Collective::allreduce, "ring", 1, 0, false, 0},
    // What is received fills half of what is allocated for it.
    {Collective::allreduce, "rabenseifner", 1, 1, false, 0.5, 2, 0.5},
    {Collective::reduce_scatter, "ring", 1, 1, false, 1},
    {Collective::reduce_scatter, "recursive_halving", 1, 1, true, 1.5, 1, 1},
    {Collective::reduce, "binomial", 0, 1, true, 2},
    {Collective::reduce, "rabenseifner", 1, 1, true, 1.5, 1, 0.5},
    {Collective::reduce, "direct", 0, 1, false, 1},
};

bool is(const Algorithm& a, Collective kind, std::string_view name) { return a.kind == kind && a.name == name; }

// Until all of a binomial tree of n have a vector, in vectors of a rank's port, where each rank sends to all its
// children at once: to rank + d for each power of two d above the rank, as far as there are such ranks.
Rank at_once(Rank rank, Rank n) {
  Rank children = 0, longest = 0;
  for (Count d = std::bit_ceil(Count(rank) + 1); rank + d < n; d *= 2, ++children)
    longest = std::max(longest, at_once(Rank(rank + d), n));
  return children + longest;
}

}  // namespace

MpiWork mpi_work(const Algorithm& a, bool open_mpi, bool whole, Rank ranks, Rank nodes, double bytes) {
  MpiWork work;
  if (ranks < 2) return work;
  for (const Reduction& r : kReductions)
    if (is(a, r.kind, r.algorithm)) {
      const bool folds = !std::has_single_bit(ranks);
      work.copied = r.copied * bytes;
      work.allocated = r.allocated * bytes, work.several = r.several, work.touched = r.touched * bytes;
      work.sent = folds ? r.fold_sent * bytes : 0;
      work.combined = folds ? r.fold_combined * bytes : 0;
    }
  // A rank of Open MPI sends to all its children at once, so the nearest one, whose subtree is the largest, gets its
  // vector as late as the others: k (k + 1) / 2 vectors after each other on 2^k nodes, not k.
  if (open_mpi && whole && nodes > 1 && is(a, Collective::broadcast, "binomial"))
    work.sent = (at_once(0, nodes) - std::bit_width(nodes - 1)) * bytes;
  // Ranks between the root and the leaves hold their subtrees' blocks in memory of their own.
  if (is(a, Collective::gather, "binomial")) work.allocated = bytes, work.touched = bytes / 2;
  if (is(a, Collective::scatter, "binomial")) work.allocated = bytes / 2, work.touched = bytes * (1 - 2.0 / ranks);
  if (is(a, Collective::alltoall, "bruck") || is(a, Collective::allgather, "bruck"))
    work.allocated = work.touched = bytes;
  // One exchange after the other; one send, which ends when its receiver has answered; one receive, whose sender's
  // request has come before, so that half of the way is left.
  const double others = ranks - 1;
  if (is(a, Collective::alltoall, "pairwise") || is(a, Collective::reduce_scatter, "pairwise")) work.waits = others;
  if (is(a, Collective::scatter, "linear")) work.met = others;
  if (is(a, Collective::gather, "linear")) work.met = others / 2;
  return work;
}

double mpi_work_us(const MpiWork& work, double block, const CostModel& costs, const MpiMemory& memory) {
  const bool fresh = work.allocated > double(work.several ? memory.several_bytes : memory.fresh_bytes);
  const double waits = work.waits + (costs.met(block) ? work.met : 0);
  return (waits * costs.net_all.alpha_ns + work.sent * costs.net_all.beta_ns_per_byte + costs.combine(work.combined) +
          costs.copy(work.copied) + (fresh ? work.touched / memory.fresh_GBps : 0)) /
         1e3;
}

}  // namespace gccl::sim
