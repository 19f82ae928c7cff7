// What a port sees of the links to its peers while messages are on their way.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gccl::fault {

// Of one peer, since it was asked last. Counted are frames of kLongBytes and more, where the library wants to know
// (GCCL_LINK_SLOW). A link is at work while its sender has left bytes to the system and its receiver has room for them:
// so a receiver that finds nothing in the midst of a frame has waited for the link, unless the sender was away.
struct Arrivals {
  static constexpr std::uint64_t kLongBytes = 64 << 10, kBestBytes = 256 << 10;

  std::uint64_t bytes = 0;  // that have come from the peer
  // Between two looks within a frame that both left the socket empty. What came meanwhile may have filled the room that
  // there was, where this rank looks seldom: then it did not wait, and the time does not count.
  std::uint64_t waited_ns = 0;
  // The highest rate, in bytes a second, at which a frame's last kBestBytes or more came after such a look.
  std::uint64_t best = 0;
  // The other way: bytes of this rank's that the system took, and so long this rank did not look after a socket that
  // had been full and was found mostly empty.
  std::uint64_t sent = 0, away_ns = 0;

  // Over several connections at once: the times of one are mostly the others', too.
  Arrivals& operator+=(const Arrivals& o) {
    bytes += o.bytes;
    waited_ns = std::max(waited_ns, o.waited_ns);
    best = std::max(best, o.best);
    sent += o.sent;
    away_ns = std::max(away_ns, o.away_ns);
    return *this;
  }
};

}  // namespace gccl::fault
