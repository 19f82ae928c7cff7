// What NCCL and Open MPI would choose for a call, and which of GCCL's rows does that.
#pragma once

#include <optional>
#include <string>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/select/others/nccl_model.hpp"

namespace gccl {

enum class PlannerKind : std::uint8_t { gccl, nccl, openmpi };
constexpr std::array<std::string_view, 3> kPlanners{"gccl", "nccl", "openmpi"};

struct OtherChoice {
  std::string theirs;                    // "nvls_tree, Simple", "segmented_ring"; empty: no rule for this collective
  std::string_view protocol{};           // NCCL's; empty: there is none
  const Algorithm* algorithm = nullptr;  // null: no row can stand for it, GCCL's own planner has to choose
  std::string note;                      // how the row differs from theirs; empty: it does not
};

// NCCL's algorithm that a row stands for, where NCCL has it for that collective.
std::optional<NcclAlgorithm> nccl_algorithm(const Algorithm& row);
std::optional<NcclProtocol> nccl_protocol(std::string_view name);

// `call` as plan() takes it; blocks of different lengths count as the mean one.
OtherChoice nccl_choice(const Call& call, const View& view, double element_bytes, const NcclMachine& machine);
OtherChoice openmpi_choice(const Call& call, const View& view, double element_bytes);
// Open MPI's rings for all-reduces of fewer elements than ranks go by recursive doubling instead.
inline bool openmpi_has_no_ring(const Call& call, Rank ranks) {
  return call.kind == Collective::allreduce && call.count < ranks;
}

}  // namespace gccl
