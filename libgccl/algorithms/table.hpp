// The table of algorithms. A new one is a file and a line here: the file defines `constexpr Algorithm` of that name, or
// a span of several (docs/algorithms.md shows it step by step). Lists and "all" follow this order, and of two that are
// predicted to be equally fast the first is taken.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

// clang-format off
#define GCCL_ALGORITHMS(row, family) \
  row(allreduce_ring) \
  row(allreduce_recursive_doubling) \
  row(allreduce_rabenseifner) \
  row(allreduce_binomial_tree) \
  row(allreduce_double_binary_tree) \
  row(allreduce_tree) \
  row(allreduce_swing) \
  row(allreduce_pairwise) \
  row(allreduce_direct) \
  row(allreduce_torus2d) \
  family(allreduce_hierarchical) \
  row(allreduce_nvls) \
  row(allreduce_nvls_tree) \
  row(reduce_scatter_ring) \
  row(reduce_scatter_recursive_halving) \
  row(reduce_scatter_pairwise) \
  row(reduce_scatter_nvls) \
  row(reduce_scatterv_ring) \
  row(reduce_scatterv_pairwise) \
  row(reduce_binomial) \
  row(reduce_chain) \
  row(reduce_rabenseifner) \
  row(reduce_direct) \
  row(broadcast_binomial) \
  row(broadcast_chain) \
  row(broadcast_scatter_allgather) \
  row(broadcast_double_binary_tree) \
  row(broadcast_direct) \
  row(broadcast_direct_staged) \
  row(allgather_ring) \
  row(allgather_recursive_doubling) \
  row(allgather_bruck) \
  row(allgather_neighbor_exchange) \
  row(allgather_pat) \
  row(allgather_hierarchical) \
  row(allgather_nvls) \
  row(allgather_direct) \
  row(allgatherv_ring) \
  row(allgatherv_direct) \
  row(gather_linear) \
  row(gather_binomial) \
  row(scatter_linear) \
  row(scatter_binomial) \
  row(alltoall_pairwise) \
  row(alltoall_bruck) \
  row(alltoall_hierarchical) \
  row(alltoallv_pairwise) \
  row(alltoallv_hierarchical) \
  row(barrier_dissemination) \
  row(barrier_tree) \
  row(barrier_direct) \
  row(sendrecv_direct)
// clang-format on

namespace gccl {

#define GCCL_ROW(name) extern const Algorithm name;
#define GCCL_FAMILY(name) extern const std::span<const Algorithm> name;
GCCL_ALGORITHMS(GCCL_ROW, GCCL_FAMILY)
#undef GCCL_ROW
#undef GCCL_FAMILY

}  // namespace gccl
