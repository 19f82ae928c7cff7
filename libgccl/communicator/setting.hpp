// What a communicator is like, as far as plans depend on it.
#pragma once

#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl {

// Channels of a communicator: the lanes of collectives, then the user's own messages.
inline constexpr std::uint32_t kPointToPointChannel = kLanesMax;
inline constexpr std::uint32_t kChannels = kLanesMax + 1;

struct Setting {
  const TransportModels* models = &transport_models();
  bool in_memory = false;         // every peer of every rank is reached through this machine's memory
  bool oversubscribed = false;    // more ranks than processors
  std::string_view cost_model{};  // of the transport
  View view{};                    // the rank's own
  View first{};  // rank 0's, from which all ranks plan: nodes of different sizes look different from each of them
  CostModel costs{};
  Tuning tuning{};

  void use(const Layout& layout, Rank rank);
};

}  // namespace gccl
