// The selection tree of MPICH 4 (maint/tuning/coll/mpir/generic.json shows its form): objects within objects, whose
// keys are conditions that are looked at in their order, with an algorithm at the end of each way.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "libgccl/json/reader.hpp"
#include "sim/tuning/exports.hpp"
#include "sim/tuning/segments.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;
using Tree = nlohmann::ordered_json;

// What MPICH 4.0 does by default: the conditions on the way, then the algorithm without "MPIR_". What it does for calls
// without data (its algorithms for shared memory) is left out.
struct Default {
  std::string_view conditions, algorithm;
};
constexpr Default kDefaults[] = {
    {"bcast/intra/comm_size<8", "Bcast_intra_binomial"},
    {"bcast/intra/comm_size=pow2/avg_msg_size<=12288", "Bcast_intra_binomial"},
    {"bcast/intra/comm_size=pow2/avg_msg_size<=524288", "Bcast_intra_scatter_recursive_doubling_allgather"},
    {"bcast/intra/comm_size=pow2/avg_msg_size=any", "Bcast_intra_scatter_ring_allgather"},
    {"bcast/intra/comm_size=any/avg_msg_size<=12288", "Bcast_intra_binomial"},
    {"bcast/intra/comm_size=any/avg_msg_size=any", "Bcast_intra_scatter_ring_allgather"},
    {"bcast/inter", "Bcast_inter_remote_send_local_bcast"},
    {"allreduce/intra/avg_msg_size<=8", "Allreduce_intra_recursive_doubling"},
    {"allreduce/intra/avg_msg_size=any/is_op_built_in=no", "Allreduce_intra_recursive_doubling"},
    {"allreduce/intra/avg_msg_size=any/is_op_built_in=yes/count<pow2", "Allreduce_intra_recursive_doubling"},
    {"allreduce/intra/avg_msg_size=any/is_op_built_in=yes/count=any", "Allreduce_intra_reduce_scatter_allgather"},
    {"allreduce/inter", "Allreduce_inter_reduce_exchange_bcast"},
    {"allgather/intra/comm_size=pow2/total_msg_size<524288", "Allgather_intra_recursive_doubling"},
    {"allgather/intra/comm_size=pow2/total_msg_size=any", "Allgather_intra_ring"},
    {"allgather/intra/comm_size=any/total_msg_size<81920", "Allgather_intra_brucks"},
    {"allgather/intra/comm_size=any/total_msg_size=any", "Allgather_intra_ring"},
    {"allgather/inter", "Allgather_inter_local_gather_remote_bcast"},
    {"allgatherv/intra/comm_size=pow2/total_msg_size<524288", "Allgatherv_intra_recursive_doubling"},
    {"allgatherv/intra/comm_size=pow2/total_msg_size=any", "Allgatherv_intra_ring"},
    {"allgatherv/intra/comm_size=any/total_msg_size<81920", "Allgatherv_intra_brucks"},
    {"allgatherv/intra/comm_size=any/total_msg_size=any", "Allgatherv_intra_ring"},
    {"allgatherv/inter", "Allgatherv_inter_remote_gather_local_bcast"},
    {"reduce/intra/avg_msg_size<=2048", "Reduce_intra_binomial"},
    {"reduce/intra/avg_msg_size=any/is_op_built_in=yes/count<pow2", "Reduce_intra_binomial"},
    {"reduce/intra/avg_msg_size=any/is_op_built_in=yes/count=any", "Reduce_intra_reduce_scatter_gather"},
    {"reduce/intra/avg_msg_size=any/is_op_built_in=no", "Reduce_intra_binomial"},
    {"reduce/inter", "Reduce_inter_local_reduce_remote_send"},
    {"reduce_scatter/intra/is_commutative=yes/total_msg_size<524288", "Reduce_scatter_intra_recursive_halving"},
    {"reduce_scatter/intra/is_commutative=yes/total_msg_size=any", "Reduce_scatter_intra_pairwise"},
    {"reduce_scatter/intra/is_commutative=no", "Reduce_scatter_intra_recursive_doubling"},
    {"reduce_scatter/inter", "Reduce_scatter_inter_remote_reduce_local_scatter"},
    {"reduce_scatter_block/intra/is_commutative=yes/total_msg_size<524288",
     "Reduce_scatter_block_intra_recursive_halving"},
    {"reduce_scatter_block/intra/is_commutative=yes/total_msg_size=any", "Reduce_scatter_block_intra_pairwise"},
    {"reduce_scatter_block/intra/is_commutative=no", "Reduce_scatter_block_intra_recursive_doubling"},
    {"reduce_scatter_block/inter", "Reduce_scatter_block_inter_remote_reduce_local_scatter"},
    {"gather/intra", "Gather_intra_binomial"},
    {"gather/inter", "Gather_inter_linear"},
    {"scatter/intra", "Scatter_intra_binomial"},
    {"scatter/inter", "Scatter_inter_linear"},
    {"gatherv", "Gatherv_allcomm_linear"},
    {"scatterv", "Scatterv_allcomm_linear"},
    {"scan/intra", "Scan_intra_recursive_doubling"},
    {"exscan", "Exscan_intra_recursive_doubling"},
    {"barrier/intra", "Barrier_intra_dissemination"},
    {"barrier/inter", "Barrier_inter_bcast"},
    {"alltoall/intra/is_sendbuf_inplace=yes", "Alltoall_intra_pairwise_sendrecv_replace"},
    {"alltoall/intra/is_sendbuf_inplace=no/comm_size<8/avg_msg_size<=32768", "Alltoall_intra_scattered"},
    {"alltoall/intra/is_sendbuf_inplace=no/comm_size<8/avg_msg_size=any", "Alltoall_intra_pairwise"},
    {"alltoall/intra/is_sendbuf_inplace=no/comm_size=any/avg_msg_size<=256", "Alltoall_intra_brucks"},
    {"alltoall/intra/is_sendbuf_inplace=no/comm_size=any/avg_msg_size<=32768", "Alltoall_intra_scattered"},
    {"alltoall/intra/is_sendbuf_inplace=no/comm_size=any/avg_msg_size=any", "Alltoall_intra_pairwise"},
    {"alltoall/inter", "Alltoall_inter_pairwise_exchange"},
    {"alltoallv/intra/is_sendbuf_inplace=yes", "Alltoallv_intra_pairwise_sendrecv_replace"},
    {"alltoallv/intra/is_sendbuf_inplace=no", "Alltoallv_intra_scattered"},
    {"alltoallv/inter", "Alltoallv_inter_pairwise_exchange"},
    {"alltoallw/intra/is_sendbuf_inplace=yes", "Alltoallw_intra_pairwise_sendrecv_replace"},
    {"alltoallw/intra/is_sendbuf_inplace=no", "Alltoallw_intra_scattered"},
    {"alltoallw/inter", "Alltoallw_inter_pairwise_exchange"},
    {"neighbor_allgather", "Neighbor_allgather_allcomm_nb"},
    {"neighbor_allgatherv", "Neighbor_allgatherv_allcomm_nb"},
    {"neighbor_alltoall", "Neighbor_alltoall_allcomm_nb"},
    {"neighbor_alltoallv", "Neighbor_alltoallv_allcomm_nb"},
    {"neighbor_alltoallw", "Neighbor_alltoallw_allcomm_nb"},
    {"ibarrier/intra", "Ibarrier_intra_sched_recursive_doubling"},
    {"ibarrier/inter", "Ibarrier_inter_sched_bcast"},
    {"ibcast/intra/avg_msg_size<12288", "Ibcast_intra_sched_binomial"},
    {"ibcast/intra/avg_msg_size=any", "Ibcast_intra_sched_scatter_ring_allgather"},
    {"ibcast/inter", "Ibcast_inter_sched_flat"},
    {"iallreduce/intra/avg_msg_size<=2048", "Iallreduce_intra_sched_recursive_doubling"},
    {"iallreduce/intra/avg_msg_size=any/is_op_built_in=no", "Iallreduce_intra_sched_recursive_doubling"},
    {"iallreduce/intra/avg_msg_size=any/is_op_built_in=yes/count<pow2", "Iallreduce_intra_sched_recursive_doubling"},
    {"iallreduce/intra/avg_msg_size=any/is_op_built_in=yes/count=any",
     "Iallreduce_intra_sched_reduce_scatter_allgather"},
    {"iallreduce/inter", "Iallreduce_inter_sched_remote_reduce_local_bcast"},
    {"iallgather/intra/comm_size=pow2/total_msg_size<524288", "Iallgather_intra_sched_recursive_doubling"},
    {"iallgather/intra/comm_size=pow2/total_msg_size=any", "Iallgather_intra_sched_ring"},
    {"iallgather/intra/comm_size=any/total_msg_size<81920", "Iallgather_intra_sched_brucks"},
    {"iallgather/intra/comm_size=any/total_msg_size=any", "Iallgather_intra_sched_ring"},
    {"iallgather/inter", "Iallgather_inter_sched_local_gather_remote_bcast"},
    {"iallgatherv/intra/comm_size=pow2/total_msg_size<524288", "Iallgatherv_intra_sched_recursive_doubling"},
    {"iallgatherv/intra/comm_size=pow2/total_msg_size=any", "Iallgatherv_intra_sched_ring"},
    {"iallgatherv/intra/comm_size=any/total_msg_size<81920", "Iallgatherv_intra_sched_brucks"},
    {"iallgatherv/intra/comm_size=any/total_msg_size=any", "Iallgatherv_intra_sched_ring"},
    {"iallgatherv/inter", "Iallgatherv_inter_sched_remote_gather_local_bcast"},
    {"ireduce/intra/avg_msg_size<=2048", "Ireduce_intra_sched_binomial"},
    {"ireduce/intra/avg_msg_size=any/is_op_built_in=yes/count<pow2", "Ireduce_intra_sched_binomial"},
    {"ireduce/intra/avg_msg_size=any/is_op_built_in=yes/count=any", "Ireduce_intra_sched_reduce_scatter_gather"},
    {"ireduce/intra/avg_msg_size=any/is_op_built_in=no", "Ireduce_intra_sched_binomial"},
    {"ireduce/inter", "Ireduce_inter_sched_local_reduce_remote_send"},
    {"ireduce_scatter/intra/is_commutative=yes/total_msg_size<524288", "Ireduce_scatter_intra_sched_recursive_halving"},
    {"ireduce_scatter/intra/is_commutative=yes/total_msg_size=any", "Ireduce_scatter_intra_sched_pairwise"},
    {"ireduce_scatter/intra/is_commutative=no", "Ireduce_scatter_intra_sched_recursive_doubling"},
    {"ireduce_scatter/inter", "Ireduce_scatter_inter_sched_remote_reduce_local_scatterv"},
    {"ireduce_scatter_block/intra/is_commutative=yes/total_msg_size<524288",
     "Ireduce_scatter_block_intra_sched_recursive_halving"},
    {"ireduce_scatter_block/intra/is_commutative=yes/total_msg_size=any", "Ireduce_scatter_block_intra_sched_pairwise"},
    {"ireduce_scatter_block/intra/is_commutative=no", "Ireduce_scatter_block_intra_sched_recursive_doubling"},
    {"ireduce_scatter_block/inter", "Ireduce_scatter_block_inter_sched_remote_reduce_local_scatterv"},
    {"igather/intra", "Igather_intra_sched_binomial"},
    {"igather/inter", "Igather_inter_sched_long"},
    {"iscatter/intra", "Iscatter_intra_sched_binomial"},
    {"iscatter/inter", "Iscatter_inter_sched_linear"},
    {"igatherv", "Igatherv_allcomm_sched_linear"},
    {"iscatterv", "Iscatterv_allcomm_sched_linear"},
    {"iscan", "Iscan_intra_sched_recursive_doubling"},
    {"iexscan", "Iexscan_intra_sched_recursive_doubling"},
    {"ialltoall/intra/is_sendbuf_inplace=yes", "Ialltoall_intra_sched_inplace"},
    {"ialltoall/intra/is_sendbuf_inplace=no/avg_msg_size<=32768", "Ialltoall_intra_sched_permuted_sendrecv"},
    {"ialltoall/intra/is_sendbuf_inplace=no/avg_msg_size=any", "Ialltoall_intra_sched_pairwise"},
    {"ialltoall/inter", "Ialltoall_inter_sched_pairwise_exchange"},
    {"ialltoallv/intra/is_sendbuf_inplace=yes", "Ialltoallv_intra_sched_inplace"},
    {"ialltoallv/intra/is_sendbuf_inplace=no", "Ialltoallv_intra_sched_blocked"},
    {"ialltoallv/inter", "Ialltoallv_inter_sched_pairwise_exchange"},
    {"ialltoallw/intra/is_sendbuf_inplace=yes", "Ialltoallw_intra_sched_inplace"},
    {"ialltoallw/intra/is_sendbuf_inplace=no", "Ialltoallw_intra_sched_blocked"},
    {"ialltoallw/inter", "Ialltoallw_inter_sched_pairwise_exchange"},
    {"ineighbor_allgather", "Ineighbor_allgather_allcomm_sched_linear"},
    {"ineighbor_allgatherv", "Ineighbor_allgatherv_allcomm_sched_linear"},
    {"ineighbor_alltoall", "Ineighbor_alltoall_allcomm_sched_linear"},
    {"ineighbor_alltoallv", "Ineighbor_alltoallv_allcomm_sched_linear"},
    {"ineighbor_alltoallw", "Ineighbor_alltoallw_allcomm_sched_linear"},
};

Tree leaf(std::string_view algorithm) {
  const std::string name = algorithm.starts_with("MPIR_") ? std::string(algorithm) : "MPIR_" + std::string(algorithm);
  return {{"algorithm=" + name, Tree::object()}};
}

Tree defaults() {
  Tree all = Tree::object();
  for (const Default& d : kDefaults) {
    Tree* at = &all;
    std::string_view left = d.conditions;
    for (bool first = true; !left.empty(); first = false) {
      const std::string_view word = left.substr(0, left.find('/'));
      left.remove_prefix(std::min(left.size(), word.size() + 1));
      std::string key(word);
      if (first) key = "collective=" + key;
      if (word == "intra" || word == "inter") key = "comm_type=" + key;
      at = &(*at)[key];
    }
    *at = leaf(d.algorithm);
  }
  return all;
}

// MPICH reads a condition's number into an int (src/mpi/coll/src/csel.c).
constexpr Count kSizeMax = std::numeric_limits<int>::max();

// How MPICH counts a call's size, and by how much that is less than nccl-tests' count.
struct Sizes {
  std::string_view collective, condition;
  bool per_rank = false;
};
std::optional<Sizes> sizes_of(Collective kind) {
  switch (kind) {
    case Collective::allreduce: return {{"allreduce", "avg_msg_size"}};
    case Collective::broadcast: return {{"bcast", "avg_msg_size"}};
    case Collective::reduce: return {{"reduce", "avg_msg_size"}};
    case Collective::allgather: return {{"allgather", "total_msg_size"}};
    case Collective::reduce_scatter: return {{"reduce_scatter_block", "total_msg_size"}};
    case Collective::alltoall: return {{"alltoall", "avg_msg_size", true}};
    default: return std::nullopt;  // gather, scatter and barrier have one algorithm each
  }
}

// What an algorithm asks of a call; others get what MPICH takes then.
Tree guarded(std::string_view algorithm) {
  const auto either = [](std::string_view condition, Tree yes, Tree no) {
    Tree t;
    t[std::string(condition) + "=yes"] = std::move(yes);
    t[std::string(condition) + "=no"] = std::move(no);
    return t;
  };
  const auto by_count = [&](std::string_view few) {
    Tree t;
    t["count<pow2"] = leaf(few);
    t["count=any"] = leaf(algorithm);
    return either("is_op_built_in", std::move(t), leaf(few));
  };
  if (algorithm == "MPIR_Allreduce_intra_reduce_scatter_allgather")
    return by_count("MPIR_Allreduce_intra_recursive_doubling");
  if (algorithm == "MPIR_Reduce_intra_reduce_scatter_gather") return by_count("MPIR_Reduce_intra_binomial");
  if (algorithm.starts_with("MPIR_Reduce_scatter_block"))
    return either("is_commutative", leaf(algorithm), leaf("MPIR_Reduce_scatter_block_intra_recursive_doubling"));
  if (algorithm.starts_with("MPIR_Alltoall"))
    return either("is_sendbuf_inplace", leaf("MPIR_Alltoall_intra_pairwise_sendrecv_replace"), leaf(algorithm));
  return leaf(algorithm);
}

}  // namespace

std::string mpich_json(const Json& document, MpichRelease release) {
  Tree tree = defaults();
  if (release != MpichRelease::v4_0)  // pull request 5857 gave the algorithm another name, and a parameter
    tree["collective=barrier"]["comm_type=intra"] = {
        {"algorithm=MPIR_Barrier_intra_k_dissemination", Tree{{"k=2", Tree::object()}}}};
  std::map<Collective, std::vector<TunedCalls>> by_kind;
  for (TunedCalls& t : tuned_calls(document, Library::mpich)) by_kind[t.kind].push_back(std::move(t));
  for (const auto& [kind, list] : by_kind) {
    const auto sizes = sizes_of(kind);
    if (!sizes) continue;
    Tree& intra = tree["collective=" + std::string(sizes->collective)]["comm_type=intra"];
    const Tree usual = intra;
    Tree tuned = Tree::object();
    Rank before = 0;
    for (const TunedCalls& calls : list) {
      if (calls.ranks > before + 1) tuned[fmt::format("comm_size<{}", calls.ranks)] = usual;
      before = calls.ranks;
      Tree& here = tuned[fmt::format("comm_size<={}", calls.ranks)] = Tree::object();
      Count last = 0;
      for (const Segment& s : calls.segments) {
        const Count end = std::min(sizes->per_rank ? (s.to - 1) / calls.ranks + 1 : s.to, kSizeMax);
        if (end <= std::exchange(last, end)) continue;
        here[fmt::format("{}<{}", sizes->condition, end)] =
            s.tried ? guarded(counterpart_of(*s.cell, *s.tried, Library::mpich).name) : usual;
      }
      here[fmt::format("{}=any", sizes->condition)] = usual;
    }
    tuned["comm_size=any"] = usual;
    intra = std::move(tuned);
  }
  return tree.dump(1) + '\n';
}

}  // namespace gccl::sim
