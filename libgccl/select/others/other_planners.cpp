#include "libgccl/select/others/other_planners.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <span>

#include "libgccl/select/others/openmpi_rules.hpp"

namespace gccl {
namespace {

const Algorithm* row_for(const Call& call, const View& view, std::string_view name) {
  const Algorithm* a = find_algorithm(call.kind, name);
  return a && a->can(call, view) ? a : nullptr;
}

std::string text_of(const NcclChoice& c) {
  return fmt::format("{}, {}", kNcclAlgorithms[std::size_t(c.algorithm)], kNcclProtocols[std::size_t(c.protocol)]);
}

// A ring of a collective with a root is a chain.
std::string_view row_name(Collective kind, NcclAlgorithm a) {
  if (a == NcclAlgorithm::ring && has_root(kind)) return "chain";
  return kNcclAlgorithms[std::size_t(a)];
}

// A row that stands for another library's algorithm; `note` where it is another one.
struct Stand {
  Collective kind;
  std::string_view theirs, row, note = {};
};

constexpr std::string_view kNoRow = "no row does that: planned by GCCL";
constexpr std::string_view kAllAtOnce = "messages to all ranks at once; here in turns";
constexpr std::string_view kNoSegments = "in one segment, as the fixed rules ask for it: the same as ring";
constexpr std::string_view kChainNote = "in one segment, as the fixed rules ask for it: a chain";
constexpr Stand kStands[] = {
    {Collective::allreduce, "nonoverlapping", "binomial_tree", "a reduce, then a broadcast, each by its own rules"},
    {Collective::allreduce, "recursive_doubling", "recursive_doubling"},
    {Collective::allreduce, "ring", "ring"},
    {Collective::allreduce, "segmented_ring", "ring", kNoSegments},
    {Collective::allreduce, "rabenseifner", "rabenseifner"},
    {Collective::allgather, "bruck", "bruck"},
    {Collective::allgather, "recursive_doubling", "recursive_doubling"},
    {Collective::allgather, "ring", "ring"},
    {Collective::allgather, "neighbor", "neighbor_exchange"},
    {Collective::allgather, "two_proc", "recursive_doubling"},
    {Collective::reduce_scatter, "basic_linear", "recursive_halving", "a reduce, then a scatter: no such row"},
    {Collective::reduce_scatter, "recursive_doubling", "recursive_halving", "of whole vectors: no such row"},
    {Collective::reduce_scatter, "recursive_halving", "recursive_halving"},
    {Collective::reduce_scatter, "butterfly", "recursive_halving", "the same rounds for a power of two"},
    {Collective::broadcast, "basic_linear", "direct"},
    {Collective::broadcast, "chain", "chain", "four chains side by side"},
    {Collective::broadcast, "pipeline", "chain", kChainNote},
    {Collective::broadcast, "split_binary_tree", "double_binary_tree", "two halves by one tree, then exchanged"},
    {Collective::broadcast, "binary_tree", "binomial", "a binary tree"},
    {Collective::broadcast, "binomial", "binomial"},
    {Collective::broadcast, "knomial", "binomial", "a tree of radix 4"},
    {Collective::broadcast, "scatter_allgather", "scatter_allgather", "with recursive doubling in place of the ring"},
    {Collective::reduce, "linear", "direct"},
    {Collective::reduce, "chain", "chain", "four chains side by side"},
    {Collective::reduce, "pipeline", "chain", kChainNote},
    {Collective::reduce, "binary", "binomial", "a binary tree"},
    {Collective::reduce, "binomial", "binomial"},
    {Collective::reduce, "in-order_binary", "binomial", "a binary tree"},
    {Collective::reduce, "rabenseifner", "rabenseifner"},
    {Collective::gather, "basic_linear", "linear"},
    {Collective::gather, "binomial", "binomial"},
    {Collective::gather, "linear_sync", "linear", "rank by rank when asked"},
    {Collective::scatter, "basic_linear", "linear"},
    {Collective::scatter, "binomial", "binomial"},
    {Collective::scatter, "linear_nb", "linear"},
    {Collective::alltoall, "linear", "pairwise", kAllAtOnce},
    {Collective::alltoall, "pairwise", "pairwise"},
    {Collective::alltoall, "modified_bruck", "bruck"},
    {Collective::alltoall, "linear_sync", "pairwise", kAllAtOnce},
    {Collective::alltoall, "two_proc", "pairwise"},
    {Collective::alltoallv, "basic_linear", "pairwise", kAllAtOnce},
    {Collective::alltoallv, "pairwise", "pairwise"},
    {Collective::barrier, "linear", "tree", "a tree of one level"},
    {Collective::barrier, "recursive_doubling", "dissemination", "the same rounds for a power of two"},
    {Collective::barrier, "bruck", "dissemination"},
    {Collective::barrier, "tree", "tree"},
    {Collective::allgatherv, "default", "direct", "a gather, then a broadcast"},
    {Collective::allgatherv, "bruck", "ring", "fewer rounds of longer messages"},
    {Collective::allgatherv, "ring", "ring"},
    {Collective::allgatherv, "neighbor", "ring", "half as many rounds of two blocks"},
    {Collective::allgatherv, "two_proc", "direct"},
    {Collective::reduce_scatterv, "non-overlapping", "pairwise", "a reduce, then a scatter"},
    {Collective::reduce_scatterv, "recursive_halving", "ring", "fewer rounds of longer messages"},
    {Collective::reduce_scatterv, "ring", "ring"},
    {Collective::reduce_scatterv, "butterfly", "ring", "fewer rounds of longer messages"},
};

// What NCCL makes of grouped sends and receives. It sends by LL up to 16 KiB and by Simple above (NVIDIA/nccl
// src/enqueue.cc), but measured all-to-alls show no step there, and none of the latencies that Simple has in rings
// (docs/accuracy.md), so the protocol is the cheapest one's.
constexpr Stand kGrouped[] = {
    {Collective::alltoall, "send/recv", "pairwise", kAllAtOnce},
    {Collective::alltoallv, "send/recv", "pairwise", kAllAtOnce},
    {Collective::gather, "send/recv", "linear"},
    {Collective::scatter, "send/recv", "linear"},
    {Collective::sendrecv, "send/recv", "direct"},
};

}  // namespace

std::optional<NcclAlgorithm> nccl_algorithm(const Algorithm& row) {
  for (std::size_t a = 0; a < kNcclAlgorithms.size(); ++a)
    if (nccl_offers(row.kind, NcclAlgorithm(a)) && row.name == row_name(row.kind, NcclAlgorithm(a)))
      return NcclAlgorithm(a);
  return std::nullopt;
}

std::optional<NcclProtocol> nccl_protocol(std::string_view name) {
  const auto found = std::ranges::find(kNcclProtocols, name);
  return found == kNcclProtocols.end() ? std::nullopt : std::optional(NcclProtocol(found - kNcclProtocols.begin()));
}

OtherChoice nccl_choice(const Call& call, const View& view, double element_bytes, const NcclMachine& machine) {
  const double bytes = double(call.count) * element_bytes * (counts_blocks(call.kind) ? view.all.size : 1);
  OtherChoice choice;
  for (const Stand& s : kGrouped) {
    if (s.kind != call.kind) continue;
    choice.theirs = std::string(s.theirs);
    choice.algorithm = row_for(call, view, s.row);
    choice.note = choice.algorithm ? s.note : kNoRow;
    return choice;
  }
  const std::vector<NcclChoice> ranking = nccl_ranking(call.kind, machine, bytes);
  if (ranking.empty()) {
    choice.note = "NCCL has no algorithms to choose from here: planned by GCCL";
    return choice;
  }
  choice.theirs = text_of(ranking[0]);
  for (const NcclChoice& c : ranking) {
    choice.algorithm = row_for(call, view, row_name(call.kind, c.algorithm));
    if (!choice.algorithm) continue;
    choice.protocol = kNcclProtocols[std::size_t(c.protocol)];
    if (c.algorithm != ranking[0].algorithm)
      choice.note = fmt::format("no such row: the next that NCCL would choose and GCCL has is {}", text_of(c));
    return choice;
  }
  choice.note = kNoRow;
  return choice;
}

OtherChoice openmpi_choice(const Call& call, const View& view, double element_bytes) {
  const Rank ranks = view.all.size;
  const double bytes = double(call.count) * element_bytes * (call.kind == Collective::reduce_scatterv ? ranks : 1);
  OtherChoice choice;
  std::string_view theirs = openmpi_algorithm(call.kind, ranks, bytes).name;
  if (theirs.empty()) {
    choice.note = "Open MPI has no rule for this collective: planned by GCCL";
    return choice;
  }
  choice.theirs = std::string(theirs);
  // What Open MPI's own functions do where they cannot serve the call (ompi/mca/coll/base/coll_base_all*.c).
  if (call.kind == Collective::allgather && theirs == "recursive_doubling" && !std::has_single_bit(ranks)) {
    theirs = "bruck";
    choice.note = "off powers of two Open MPI's falls back to bruck";
  } else if (call.kind == Collective::allgather && theirs == "neighbor" && ranks % 2 == 1) {
    theirs = "ring";
    choice.note = "with an odd number of ranks Open MPI's falls back to ring";
  } else if (theirs.ends_with("ring") && openmpi_has_no_ring(call, ranks)) {
    theirs = "recursive_doubling";
    choice.note = "with fewer elements than ranks Open MPI's falls back to recursive_doubling";
  }
  for (const Stand& s : kStands) {
    if (s.kind != call.kind || s.theirs != theirs) continue;
    choice.algorithm = row_for(call, view, s.row);
    if (choice.algorithm && choice.note.empty()) choice.note = std::string(s.note);
  }
  if (!choice.algorithm) choice.note = "no row does that for this call: planned by GCCL";
  return choice;
}

}  // namespace gccl
