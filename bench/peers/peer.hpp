// What a library under comparison supplies: ranks, a barrier, and each collective bound to its buffers. The measuring
// loop (loop.hpp) is the same for all, so that two peers differ in nothing but the library.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace gccl::bench {

enum class Kind { allreduce, allgather, reduce_scatter, broadcast, alltoall, barrier, pingpong };

inline constexpr std::array<std::string_view, 7> kind_names = {"allreduce", "allgather", "reduce_scatter", "broadcast",
                                                               "alltoall",  "barrier",   "pingpong"};

inline std::optional<Kind> kind_named(std::string_view name) {
  for (std::size_t i = 0; i < kind_names.size(); ++i)
    if (kind_names[i] == name) return Kind(i);
  return std::nullopt;
}

// The f32 buffers of one point. `count` is in elements: of the whole buffer for allreduce, broadcast and pingpong, of
// one rank's block for the others. Broadcast (root 0) and pingpong use `out` alone.
struct Buffers {
  float* in = nullptr;
  float* out = nullptr;
  std::size_t count = 0;
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  // Zeroed memory that the library itself provides for buffers, or null: then it is ordinary memory.
  virtual float* allocate(std::size_t) { return nullptr; }
  virtual void release(float*) {}
  // The operation, to be called many times. One call of pingpong is one round trip between ranks 0 and 1. Ends the
  // process with a message when the library reports an error.
  virtual std::function<void()> bind(Kind kind, Buffers buffers) = 0;
  // Whether reduce_scatter reduces over `in` and leaves the rank's block at its beginning.
  virtual bool reduces_in_place() const { return false; }
};

}  // namespace gccl::bench
