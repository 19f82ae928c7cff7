// Which algorithm serves a call, and in how many shares and lanes. Depends only on what every rank knows.
#pragma once

#include <string>

#include "libgccl/base/status.hpp"
#include "libgccl/communicator/plan.hpp"

namespace gccl {

// What the communicator is like.
struct Setting {
  View view;   // the rank's own
  View first;  // rank 0's, by which all ranks choose: nodes of unlike size look unlike from each of them
  bool shared_memory = false;  // every peer of every rank is reached through it
};

// The table of GCCL_ALGORITHM ("allreduce=ring,broadcast=chain"), checked; "" is empty.
class Overrides {
 public:
  static Status parse(const std::string& text, Overrides* out);
  // The same for tables that mean the same.
  std::string text() const;
  const Algorithm* of(Collective kind) const { return by_kind_[std::size_t(kind)]; }

 private:
  const Algorithm* by_kind_[16] = {};
};

// Channels of a communicator: the lanes of collectives, then the user's own messages.
inline constexpr Count kLanesMax = 4;
inline constexpr std::uint32_t kPointToPointChannel = kLanesMax;
inline constexpr std::uint32_t kChannels = kLanesMax + 1;

// Why the algorithm cannot serve every call, as the end of a sentence; empty where that is not known.
std::string why_not(const Algorithm& a);

// Fills in algorithm, shares, lanes and window, and what was asked for and cannot serve the call.
void choose(const Call& call, std::uint32_t element_bytes, const Setting& setting, const Overrides& overrides,
            Plan* plan);

}  // namespace gccl
