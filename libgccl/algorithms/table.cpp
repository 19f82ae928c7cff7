#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/algorithms/allgather/bruck.hpp"
#include "libgccl/algorithms/allgather/direct.hpp"
#include "libgccl/algorithms/allgather/hierarchical.hpp"
#include "libgccl/algorithms/allgather/neighbor_exchange.hpp"
#include "libgccl/algorithms/allgather/pat.hpp"
#include "libgccl/algorithms/allgather/recursive_doubling.hpp"
#include "libgccl/algorithms/allgather/ring.hpp"
#include "libgccl/algorithms/allreduce/binomial_tree.hpp"
#include "libgccl/algorithms/allreduce/direct.hpp"
#include "libgccl/algorithms/allreduce/double_binary_tree.hpp"
#include "libgccl/algorithms/allreduce/hierarchical.hpp"
#include "libgccl/algorithms/allreduce/pairwise.hpp"
#include "libgccl/algorithms/allreduce/rabenseifner.hpp"
#include "libgccl/algorithms/allreduce/recursive_doubling.hpp"
#include "libgccl/algorithms/allreduce/ring.hpp"
#include "libgccl/algorithms/allreduce/swing.hpp"
#include "libgccl/algorithms/allreduce/torus2d.hpp"
#include "libgccl/algorithms/alltoall/bruck.hpp"
#include "libgccl/algorithms/alltoall/hierarchical.hpp"
#include "libgccl/algorithms/alltoall/pairwise.hpp"
#include "libgccl/algorithms/barrier/direct.hpp"
#include "libgccl/algorithms/barrier/dissemination.hpp"
#include "libgccl/algorithms/barrier/tree.hpp"
#include "libgccl/algorithms/broadcast/binomial.hpp"
#include "libgccl/algorithms/broadcast/chain.hpp"
#include "libgccl/algorithms/broadcast/direct.hpp"
#include "libgccl/algorithms/broadcast/double_binary_tree.hpp"
#include "libgccl/algorithms/broadcast/scatter_allgather.hpp"
#include "libgccl/algorithms/gather_scatter/gather_binomial.hpp"
#include "libgccl/algorithms/gather_scatter/gather_linear.hpp"
#include "libgccl/algorithms/gather_scatter/scatter_binomial.hpp"
#include "libgccl/algorithms/gather_scatter/scatter_linear.hpp"
#include "libgccl/algorithms/parts/few_ranks.hpp"
#include "libgccl/algorithms/reduce/binomial.hpp"
#include "libgccl/algorithms/reduce/chain.hpp"
#include "libgccl/algorithms/reduce/direct.hpp"
#include "libgccl/algorithms/reduce/rabenseifner.hpp"
#include "libgccl/algorithms/reduce_scatter/pairwise.hpp"
#include "libgccl/algorithms/reduce_scatter/recursive_halving.hpp"
#include "libgccl/algorithms/reduce_scatter/ring.hpp"
#include "libgccl/algorithms/send_recv/direct.hpp"

namespace gccl {
namespace {

// The hierarchical all-reduce with these parts.
template <const Inner& inner, const Outer& outer>
constexpr Algorithm hierarchical(std::string_view name, bool variant = true) {
  return {name,
          Collective::allreduce,
          hierarchical_all_reduce<inner, outer>,
          nullptr,
          nullptr,
          hierarchical_all_reduce_cost<inner, outer>,
          variant};
}

constexpr Algorithm kTable[] = {
    {"ring", Collective::allreduce, all_reduce<ring_all_reduce>, nullptr, nullptr, vector_cost<ring_all_reduce_cost>},
    {"recursive_doubling", Collective::allreduce, all_reduce<recursive_doubling_all_reduce>, nullptr, nullptr,
     vector_cost<recursive_doubling_all_reduce_cost>},
    {"rabenseifner", Collective::allreduce, all_reduce<rabenseifner_all_reduce>, nullptr, nullptr,
     vector_cost<rabenseifner_all_reduce_cost>},
    {"binomial_tree", Collective::allreduce, all_reduce<binomial_tree_all_reduce>, nullptr, nullptr,
     vector_cost<binomial_tree_all_reduce_cost>},
    {"double_binary_tree", Collective::allreduce, all_reduce<double_binary_tree_all_reduce>, nullptr, nullptr,
     vector_cost<double_binary_tree_all_reduce_cost>},
    {"swing", Collective::allreduce, all_reduce<swing_all_reduce>, nullptr, nullptr,
     vector_cost<swing_all_reduce_cost>},
    {"pairwise", Collective::allreduce, pairwise_all_reduce, nullptr, crossbar_ranks, vector_cost<pairwise_cost>},
    {"direct", Collective::allreduce, direct_all_reduce, direct_all_reduce_scratch, few_ranks, direct_all_reduce_cost},
    {"torus2d", Collective::allreduce, torus2d_all_reduce, nullptr, torus2d_all_reduce_fits, torus2d_all_reduce_cost},
    hierarchical<kInnerRing, kOuterRabenseifner>("hierarchical", false),
    hierarchical<kInnerRing, kOuterRing>("hierarchical(ring,ring)"),
    hierarchical<kInnerRing, kOuterRecursiveDoubling>("hierarchical(ring,recursive_doubling)"),
    hierarchical<kInnerRing, kOuterRabenseifner>("hierarchical(ring,rabenseifner)"),
    hierarchical<kInnerRing, kOuterBinomialTree>("hierarchical(ring,binomial_tree)"),
    hierarchical<kInnerRing, kOuterDoubleBinaryTree>("hierarchical(ring,double_binary_tree)"),
    hierarchical<kInnerRing, kOuterSwing>("hierarchical(ring,swing)"),
    hierarchical<kInnerRecursiveHalving, kOuterRing>("hierarchical(recursive_halving,ring)"),
    hierarchical<kInnerRecursiveHalving, kOuterRecursiveDoubling>("hierarchical(recursive_halving,recursive_doubling)"),
    hierarchical<kInnerRecursiveHalving, kOuterRabenseifner>("hierarchical(recursive_halving,rabenseifner)"),
    hierarchical<kInnerRecursiveHalving, kOuterBinomialTree>("hierarchical(recursive_halving,binomial_tree)"),
    hierarchical<kInnerRecursiveHalving, kOuterDoubleBinaryTree>("hierarchical(recursive_halving,double_binary_tree)"),
    hierarchical<kInnerRecursiveHalving, kOuterSwing>("hierarchical(recursive_halving,swing)"),
    hierarchical<kInnerPairwise, kOuterRing>("hierarchical(pairwise,ring)"),
    hierarchical<kInnerPairwise, kOuterRecursiveDoubling>("hierarchical(pairwise,recursive_doubling)"),
    hierarchical<kInnerPairwise, kOuterRabenseifner>("hierarchical(pairwise,rabenseifner)"),
    hierarchical<kInnerPairwise, kOuterBinomialTree>("hierarchical(pairwise,binomial_tree)"),
    hierarchical<kInnerPairwise, kOuterDoubleBinaryTree>("hierarchical(pairwise,double_binary_tree)"),
    hierarchical<kInnerPairwise, kOuterSwing>("hierarchical(pairwise,swing)"),

    {"ring", Collective::reduce_scatter, ring_reduce_scatter_blocks, ring_reduce_scatter_blocks_scratch, nullptr,
     ring_reduce_scatter_blocks_cost},
    {"recursive_halving", Collective::reduce_scatter, recursive_halving_reduce_scatter,
     recursive_halving_reduce_scatter_scratch, nullptr, recursive_halving_reduce_scatter_cost},
    {"pairwise", Collective::reduce_scatter, pairwise_reduce_scatter, nullptr, nullptr, pairwise_reduce_scatter_cost},

    {"ring", Collective::reduce_scatterv, ring_reduce_scatter_blocks, ring_reduce_scatter_blocks_scratch, nullptr,
     ring_reduce_scatter_blocks_cost},
    {"pairwise", Collective::reduce_scatterv, pairwise_reduce_scatter, nullptr, nullptr, pairwise_reduce_scatter_cost},

    {"binomial", Collective::reduce, binomial_reduce, binomial_reduce_scratch, nullptr, binomial_reduce_cost, false,
     binomial_reduce_interval},
    {"chain", Collective::reduce, chain_reduce, chain_reduce_scratch, nullptr, chain_reduce_cost, false,
     chain_reduce_interval},
    {"rabenseifner", Collective::reduce, rabenseifner_reduce, rabenseifner_reduce_scratch, nullptr,
     rabenseifner_reduce_cost},
    {"direct", Collective::reduce, direct_reduce, direct_reduce_scratch, nullptr, direct_reduce_cost},

    {"binomial", Collective::broadcast, binomial_broadcast, nullptr, nullptr, binomial_broadcast_cost, false,
     binomial_broadcast_interval},
    {"chain", Collective::broadcast, chain_broadcast, nullptr, nullptr, chain_broadcast_cost, false,
     chain_broadcast_interval},
    {"scatter_allgather", Collective::broadcast, scatter_allgather_broadcast, nullptr, nullptr,
     scatter_allgather_broadcast_cost},
    {"double_binary_tree", Collective::broadcast, double_binary_tree_broadcast, nullptr, nullptr,
     double_binary_tree_broadcast_cost, false, double_binary_tree_broadcast_interval},
    {"direct", Collective::broadcast, direct_broadcast, nullptr, nullptr, direct_broadcast_cost},

    {"ring", Collective::allgather, ring_all_gather, nullptr, nullptr, ring_all_gather_cost},
    {"recursive_doubling", Collective::allgather, recursive_doubling_all_gather, nullptr, nullptr,
     recursive_doubling_all_gather_cost},
    {"bruck", Collective::allgather, bruck_all_gather, bruck_all_gather_scratch, nullptr, bruck_all_gather_cost},
    {"neighbor_exchange", Collective::allgather, neighbor_exchange_all_gather, nullptr, nullptr,
     neighbor_exchange_all_gather_cost},
    {"pat", Collective::allgather, pat_all_gather, pat_all_gather_scratch, nullptr, pat_all_gather_cost},
    {"hierarchical", Collective::allgather, hierarchical_all_gather, nullptr, nullptr, hierarchical_all_gather_cost},
    {"direct", Collective::allgather, direct_all_gather, nullptr, nullptr, direct_all_gather_cost},

    {"ring", Collective::allgatherv, ring_all_gather, nullptr, nullptr, ring_all_gather_cost},
    {"direct", Collective::allgatherv, direct_all_gather, nullptr, nullptr, direct_all_gather_cost},

    {"linear", Collective::gather, linear_gather, nullptr, nullptr, linear_gather_cost},
    {"binomial", Collective::gather, binomial_gather, binomial_gather_scratch, nullptr, binomial_gather_cost},

    {"linear", Collective::scatter, linear_scatter, nullptr, nullptr, linear_scatter_cost},
    {"binomial", Collective::scatter, binomial_scatter, binomial_scatter_scratch, nullptr, binomial_scatter_cost},

    {"pairwise", Collective::alltoall, pairwise_all_to_all, pairwise_all_to_all_scratch, nullptr,
     pairwise_all_to_all_cost},
    {"bruck", Collective::alltoall, bruck_all_to_all, bruck_all_to_all_scratch, nullptr, bruck_all_to_all_cost},
    {"hierarchical", Collective::alltoall, hierarchical_all_to_all, hierarchical_all_to_all_scratch, nullptr,
     hierarchical_all_to_all_cost},

    {"pairwise", Collective::alltoallv, pairwise_all_to_all, pairwise_all_to_all_scratch, nullptr,
     pairwise_all_to_all_cost},
    {"hierarchical", Collective::alltoallv, hierarchical_all_to_all, hierarchical_all_to_all_scratch,
     hierarchical_all_to_all_fits, hierarchical_all_to_all_cost},

    {"dissemination", Collective::barrier, dissemination_barrier, nullptr, nullptr, dissemination_barrier_cost},
    {"tree", Collective::barrier, tree_barrier, nullptr, nullptr, tree_barrier_cost},
    {"direct", Collective::barrier, direct_barrier, nullptr, few_ranks, direct_barrier_cost},

    {"direct", Collective::sendrecv, direct_send_recv, direct_send_recv_scratch, nullptr, direct_send_recv_cost},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kTable; }

const Algorithm* find_algorithm(Collective kind, std::string_view name) {
  for (const Algorithm& a : kTable)
    if (a.kind == kind && a.name == name) return &a;
  return nullptr;
}

std::vector<std::string_view> algorithm_names(std::optional<Collective> kind) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : kTable)
    if ((!kind || *kind == a.kind) && std::find(names.begin(), names.end(), a.name) == names.end())
      names.push_back(a.name);
  return names;
}

Schedule sliced(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes) {
  for (Count s = lane; s < shares; s += lanes) co_yield algorithm->make(call, view, Share{s, shares});
}

}  // namespace gccl
