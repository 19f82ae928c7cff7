#include "libgccl/schedule/types.hpp"

#include <array>

namespace gccl {
namespace {
constexpr std::array<std::string_view, 13> kNames = {
    "allreduce", "allgather", "reduce_scatter", "broadcast", "reduce",     "gather",         "scatter",
    "alltoall",  "alltoallv", "barrier",        "sendrecv",  "allgatherv", "reduce_scatterv"};
}

std::span<const std::string_view> collective_names() { return kNames; }

std::string_view name(Collective kind) {
  return std::size_t(kind) < kNames.size() ? kNames[std::size_t(kind)] : "unknown collective";
}

std::optional<Collective> collective_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return Collective(i);
  return std::nullopt;
}

}  // namespace gccl
