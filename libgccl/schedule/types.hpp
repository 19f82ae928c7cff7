// The words every part of GCCL shares: ranks, counts, collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gccl {

using Rank = std::uint32_t;   // a position in a communicator, 0 .. size-1
using Count = std::uint64_t;  // elements; bytes exist only below a Backend
using Nanos = std::int64_t;   // time, integer nanoseconds

enum class Collective : std::uint8_t {
  allreduce,
  allgather,
  reduce_scatter,
  broadcast,
  reduce,
  gather,
  scatter,
  alltoall,
  alltoallv,
  barrier,
  sendrecv,  // every rank sends to the next one and receives from the one before (nccl-tests' sendrecv)
  allgatherv,
  reduce_scatterv,
};

// The names users type, in the order of the enumeration.
std::span<const std::string_view> collective_names();
std::string_view name(Collective kind);
std::optional<Collective> collective_named(std::string_view name);

// True for the collectives in which one rank is special (broadcast, reduce, gather, scatter).
constexpr bool has_root(Collective k) {
  return k == Collective::broadcast || k == Collective::reduce || k == Collective::gather || k == Collective::scatter;
}
// True for the collectives that combine elements with a reduction operation.
constexpr bool reduces(Collective k) {
  return k == Collective::allreduce || k == Collective::reduce_scatter || k == Collective::reduce ||
         k == Collective::reduce_scatterv;
}
// True for the collectives whose blocks may be of unlike length.
constexpr bool has_counts(Collective k) {
  return k == Collective::alltoallv || k == Collective::allgatherv || k == Collective::reduce_scatterv;
}

}  // namespace gccl
