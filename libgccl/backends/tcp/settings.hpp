// What the environment says about TCP, and how sockets are set up accordingly.
#pragma once

#include <string>

#include "libgccl/runtime/status.hpp"

namespace gccl::tcp {

struct Settings {
  static constexpr unsigned kStreamsMax = 16;

  enum class ZeroCopyUse { never, always, automatic };

  unsigned streams = 0;              // GCCL_TCP_STREAMS: connections per peer and channel; 0: streams_by_default
  std::string congestion = "cubic";  // GCCL_TCP_CONGESTION; empty: the system's
  ZeroCopyUse zero_copy = ZeroCopyUse::automatic;  // GCCL_TCP_ZEROCOPY: 0, 1, auto
};

// GCCL_ERR_INVALID_ARGUMENT names the variable.
Status read_settings(Settings* out);
unsigned streams_for(const Settings& settings, bool same_host);
// Buffers, congestion control, keep-alive. What the system refuses is left as it is.
void set_up(int fd, const Settings& settings);
// Both ends on one machine, and so no device between them.
bool stays_on_host(int fd);

}  // namespace gccl::tcp
