#include "sim/tuning/counterparts.hpp"

#include <bit>

#include "libgccl/select/others/other_planners.hpp"

namespace gccl::sim {
namespace {

enum class Holds : std::uint8_t { always, powers_of_two, even };

struct Row {
  Library library;
  Collective kind;
  std::string_view ours;
  Counterpart theirs;
  Holds holds = Holds::always;
};

// Open MPI: ompi/mca/coll/base and the numbers of coll/tuned 4.1; a chain is its pipeline in one segment. MPICH:
// src/mpi/coll of 4.0. Off powers of two theirs do something else where it is said here. Its reduce_scatter_block of
// operations that do not commute is a reduce of its own, and then a scatter.
constexpr Row kRows[] = {
    {Library::openmpi, Collective::allreduce, "recursive_doubling", {"recursive_doubling", 3}},
    {Library::openmpi, Collective::allreduce, "ring", {"ring", 4, true}},
    {Library::openmpi, Collective::allreduce, "rabenseifner", {"rabenseifner", 6}},
    {Library::openmpi, Collective::allgather, "bruck", {"bruck", 2}},
    {Library::openmpi, Collective::allgather, "recursive_doubling", {"recursive_doubling", 3}, Holds::powers_of_two},
    {Library::openmpi, Collective::allgather, "ring", {"ring", 4}},
    {Library::openmpi, Collective::allgather, "neighbor_exchange", {"neighbor", 5}, Holds::even},
    {Library::openmpi, Collective::reduce_scatter, "recursive_halving", {"recursive_halving", 3}, Holds::powers_of_two},
    {Library::openmpi, Collective::broadcast, "direct", {"basic_linear", 1}},
    {Library::openmpi, Collective::broadcast, "chain", {"pipeline", 3}},
    {Library::openmpi, Collective::broadcast, "binomial", {"binomial", 6}},
    {Library::openmpi, Collective::reduce, "direct", {"linear", 1}},
    {Library::openmpi, Collective::reduce, "chain", {"pipeline", 3, true}},
    {Library::openmpi, Collective::reduce, "binomial", {"binomial", 5, true}},
    {Library::openmpi, Collective::reduce, "rabenseifner", {"rabenseifner", 7}},
    {Library::openmpi, Collective::gather, "linear", {"basic_linear", 1}},
    {Library::openmpi, Collective::gather, "binomial", {"binomial", 2}},
    {Library::openmpi, Collective::scatter, "linear", {"basic_linear", 1}},
    {Library::openmpi, Collective::scatter, "binomial", {"binomial", 2}},
    {Library::openmpi, Collective::alltoall, "pairwise", {"pairwise", 2}},
    {Library::openmpi, Collective::alltoall, "bruck", {"modified_bruck", 3}},
    {Library::openmpi, Collective::barrier, "dissemination", {"bruck", 4}},
    {Library::openmpi, Collective::barrier, "tree", {"tree", 6}},
    {Library::mpich, Collective::allreduce, "recursive_doubling", {"MPIR_Allreduce_intra_recursive_doubling"}},
    {Library::mpich, Collective::allreduce, "rabenseifner", {"MPIR_Allreduce_intra_reduce_scatter_allgather"}},
    {Library::mpich, Collective::allgather, "bruck", {"MPIR_Allgather_intra_brucks"}},
    {Library::mpich,
     Collective::allgather,
     "recursive_doubling",
     {"MPIR_Allgather_intra_recursive_doubling"},
     Holds::powers_of_two},
    {Library::mpich, Collective::allgather, "ring", {"MPIR_Allgather_intra_ring"}},
    {Library::mpich,
     Collective::reduce_scatter,
     "recursive_halving",
     {"MPIR_Reduce_scatter_block_intra_recursive_halving"},
     Holds::powers_of_two},
    {Library::mpich, Collective::reduce_scatter, "pairwise", {"MPIR_Reduce_scatter_block_intra_pairwise"}},
    {Library::mpich, Collective::broadcast, "binomial", {"MPIR_Bcast_intra_binomial"}},
    {Library::mpich, Collective::broadcast, "scatter_allgather", {"MPIR_Bcast_intra_scatter_ring_allgather"}},
    {Library::mpich, Collective::reduce, "binomial", {"MPIR_Reduce_intra_binomial"}},
    {Library::mpich, Collective::reduce, "rabenseifner", {"MPIR_Reduce_intra_reduce_scatter_gather"}},
    {Library::mpich, Collective::gather, "binomial", {"MPIR_Gather_intra_binomial"}},
    {Library::mpich, Collective::scatter, "binomial", {"MPIR_Scatter_intra_binomial"}},
    {Library::mpich, Collective::alltoall, "bruck", {"MPIR_Alltoall_intra_brucks"}},
    {Library::mpich, Collective::alltoall, "pairwise", {"MPIR_Alltoall_intra_pairwise"}},
    {Library::mpich, Collective::barrier, "dissemination", {"MPIR_Barrier_intra_dissemination"}},
};

std::optional<Counterpart> nccl_counterpart(const Algorithm& a, const PlannedCall& call) {
  const auto their = nccl_algorithm(a);
  if (!their || !nccl_runs(*their, call.ranks, call.nodes)) return std::nullopt;
  if (!call.protocol.empty()) {
    const auto p = nccl_protocol(call.protocol);
    if (!p || !nccl_sends(*their, *p)) return std::nullopt;
  }
  return Counterpart{kNcclAlgorithms[std::size_t(*their)]};
}

}  // namespace

std::optional<Counterpart> counterpart(Library library, const Algorithm& a, const PlannedCall& call) {
  if (library == Library::nccl) return nccl_counterpart(a, call);
  if (call.chunks > 1) return std::nullopt;
  const Rank n = call.ranks;
  for (const Row& r : kRows) {
    if (r.library != library || r.kind != a.kind || r.ours != a.name) continue;
    if (r.holds == Holds::powers_of_two && !std::has_single_bit(n)) return std::nullopt;
    if (r.holds == Holds::even && n % 2 == 1) return std::nullopt;
    return r.theirs;
  }
  return std::nullopt;
}

std::optional<OpenMpiCollective> openmpi_collective(Collective kind) {
  switch (kind) {
    case Collective::allgather: return {{0, "allgather"}};
    case Collective::allreduce: return {{2, "allreduce"}};
    case Collective::alltoall: return {{3, "alltoall"}};
    case Collective::barrier: return {{6, "barrier"}};
    case Collective::broadcast: return {{7, "bcast"}};
    case Collective::gather: return {{9, "gather"}};
    case Collective::reduce: return {{11, "reduce"}};
    case Collective::reduce_scatter: return {{13, "reduce_scatter_block"}};
    case Collective::scatter: return {{15, "scatter"}};
    default: return std::nullopt;
  }
}

}  // namespace gccl::sim
