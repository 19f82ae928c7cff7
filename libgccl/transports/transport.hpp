// A transport as the library knows it: its GCCL_Backend, and what that interface does not say.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "gccl/backend.h"
#include "libgccl/fault/arrivals.hpp"
#include "libgccl/transports/fast_path.hpp"
#include "libgccl/transports/link_counts.hpp"

namespace gccl {

// What moves bytes between two ranks. Of a plug-in only the backend is known; its other members keep their defaults.
struct Transport {
  const GCCL_Backend* backend = nullptr;
  // How the planner's cost models call it; empty: as a network of unknown properties, which is planned like tcp.
  std::string_view cost_model{};
  // Messages come from another core's cache: a thread that waits for one spins.
  bool in_memory = false;
  // Called once on an instance where the job's ranks have no other transport: what a rank hears of an abort it hears by
  // this one. Null: that makes no difference.
  void (*serves_alone)(void* instance) = nullptr;
  // Returns the bytes of long messages that an open port has sent and received so far. Null: not known.
  std::uint64_t (*moved_bytes)(const void* port) = nullptr;
  // Null: connections are not made anew.
  LinkCounts (*link_counts)(const void* port) = nullptr;
  // Adds what an open port has seen of its peers since the last time, by rank. Null: it does not look.
  void (*take_arrivals)(void* port, fault::Arrivals* by_peer) = nullptr;
  // Called before close_port, of all ports that one thread closes then, perhaps of several ranks: says what their peers
  // would else wait for while these ports close one after the other. Null: nothing is to be said.
  void (*take_leave)(void* port) = nullptr;
  // Called before close_port where the peers do not close theirs at the same time: it waits for no word of theirs.
  // Null: it never does.
  void (*close_alone)(void* port) = nullptr;
  // So much memory of an open port that all its peers have mapped, the same at each call; null where it has not as
  // much. Null: it has none.
  std::byte* (*staging)(void* port, std::size_t bytes) = nullptr;
  // Makes the fast path of an open port that reaches all peers of its communicator, or of no port where the
  // communicator has one rank. May be null.
  std::unique_ptr<FastPath> (*fast_path)(void* port) = nullptr;
};

}  // namespace gccl
