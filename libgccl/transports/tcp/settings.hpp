// What the environment says about TCP, and how sockets are set up accordingly.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "libgccl/base/environment.hpp"
#include "libgccl/base/status.hpp"

namespace gccl::tcp {

struct Settings {
  static constexpr unsigned kStreamsMax = 16;

  enum class ZeroCopyUse { never, always, automatic };

  // GCCL_TCP_STREAMS: connections per peer and channel that long messages are spread over. One fills a link of 1 Gbit/s
  // and 1 ms (16 MiB in 147 ms; two or four take as long or longer); more help where each is limited: by loss, or by
  // one receive queue of a fast card.
  unsigned streams = 1;
  // GCCL_TCP_CONGESTION: of every connection; empty: the system's. Where nothing is said, the system's between machines
  // and cubic within one, where BBR takes the processor's pauses for the network's (16 MiB take half as long again).
  std::optional<std::string> congestion;
  ZeroCopyUse zero_copy = ZeroCopyUse::automatic;  // GCCL_TCP_ZEROCOPY: 0, 1, auto
  // GCCL_TCP_PEER_TIMEOUT_MS: a machine that acknowledges nothing for so long is lost.
  std::chrono::milliseconds peer_timeout{60000};
  // GCCL_LINK_LOST_MS: a connection that breaks is dialled again for so long, and goes on where it stopped. 0: it is
  // not, and its peer is lost.
  std::chrono::milliseconds link_lost{0};
  // GCCL_LINK_CHECK: frames have checksums, and what is damaged on its way is not delivered.
  bool checks = false;
  // GCCL_LINK_SLOW is not 0: what is seen of the links is counted.
  bool watches = false;
  bool mends() const { return link_lost.count() > 0; }
};

// GCCL_ERR_INVALID_ARGUMENT names the variable.
Status read_settings(const Environment& environment, Settings* out);
// Probes the peer's machine while nothing else travels.
void keep_alive(int fd, const Settings& settings);
// The peer's machine owes an acknowledgement for longer than the limit. A process that is stopped, or computes for long
// and lets its buffers fill, is not meant: its machine answers.
bool vanished(int fd, const Settings& settings);
// Buffers, congestion control, keep-alive. What the system refuses is left as it is.
void set_up(int fd, const Settings& settings);
// Both ends on one machine, and so no device between them.
bool stays_on_host(int fd);

}  // namespace gccl::tcp
