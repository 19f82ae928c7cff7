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

// How much of the data a rank's input or output holds.
enum class Extent : std::uint8_t {
  none,
  vector,  // all of it
  own,     // one block, the rank's own
  every,   // one block for each rank, or of each rank
};

struct Held {
  Extent extent = Extent::none;
  bool at_root = false;  // the other ranks hold nothing

  constexpr bool by(std::uint32_t rank, std::uint32_t root) const {
    return extent != Extent::none && (!at_root || rank == root);
  }
};

// A collective: what its ranks put in and what they get. definition.hpp says which element goes where.
struct Definition {
  std::string_view name;  // as users type it
  Held input, output;
  bool reduces = false;  // what a rank gets is combined from all ranks' inputs by a reduction operation
  bool counts = false;   // blocks may have different lengths
};

// In the order of the enumeration.
inline constexpr Definition kDefinitions[] = {
    {.name = "allreduce", .input = {Extent::vector}, .output = {Extent::vector}, .reduces = true},
    {.name = "allgather", .input = {Extent::own}, .output = {Extent::every}},
    {.name = "reduce_scatter", .input = {Extent::every}, .output = {Extent::own}, .reduces = true},
    {.name = "broadcast", .input = {Extent::vector, true}, .output = {Extent::vector}},
    {.name = "reduce", .input = {Extent::vector}, .output = {Extent::vector, true}, .reduces = true},
    {.name = "gather", .input = {Extent::own}, .output = {Extent::every, true}},
    {.name = "scatter", .input = {Extent::every, true}, .output = {Extent::own}},
    {.name = "alltoall", .input = {Extent::every}, .output = {Extent::every}},
    {.name = "alltoallv", .input = {Extent::every}, .output = {Extent::every}, .counts = true},
    {.name = "barrier", .input = {}, .output = {}},
    {.name = "sendrecv", .input = {Extent::vector}, .output = {Extent::vector}},
    {.name = "allgatherv", .input = {Extent::own}, .output = {Extent::every}, .counts = true},
    {.name = "reduce_scatterv", .input = {Extent::every}, .output = {Extent::own}, .reduces = true, .counts = true},
};
constexpr const Definition& definition(Collective k) { return kDefinitions[std::size_t(k)]; }

// The names users type, in the order of the enumeration.
std::span<const std::string_view> collective_names();
std::string_view name(Collective kind);
std::optional<Collective> collective_named(std::string_view name);

// True for the collectives in which one rank is special (broadcast, reduce, gather, scatter).
constexpr bool has_root(Collective k) { return definition(k).input.at_root || definition(k).output.at_root; }
// True for the collectives that combine elements with a reduction operation.
constexpr bool reduces(Collective k) { return definition(k).reduces; }
// True for the collectives whose blocks may have different lengths.
constexpr bool has_counts(Collective k) { return definition(k).counts; }
// True where Call::count is of one rank's block, not of a vector. A size in bytes, as nccl-tests counts, is then that
// of the bigger of a rank's two buffers: `ranks` blocks.
constexpr bool counts_blocks(Collective k) {
  return definition(k).input.extent == Extent::every || definition(k).output.extent == Extent::every;
}

}  // namespace gccl
