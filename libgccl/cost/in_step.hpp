// What channels in step lose: all begin at once, so a port that they share has all their messages to carry, and then
// nothing while all of the next ones are in their latency.
#pragma once

#include <algorithm>

namespace gccl {

// How long a port is idle in so many steps, one after the other, of `share` channels that share it fairly. Each step's
// message takes the port `message_ns` alone and `latency_ns` before that; the channels' first ones begin `apart_ns`
// from each other.
//
// Of a bunch of b messages the first gains on the second what it carries alone, and so arrives, and begins the next
// step, b - 1 times that earlier. Once that is a whole message it has left the bunch, and the next one begins to. The
// last two stay together. While a bunch is in its latency, the port has the others' messages at most.
inline double idle_in_step(double share, double steps, double latency_ns, double apart_ns, double message_ns) {
  if (share < 1.5 || steps < 2) return 0;
  double idle = 0, left = steps - 1, bunch = share;
  for (; bunch > 2.5 && left >= 1; --bunch) {
    const double alone = latency_ns - (share - bunch) * message_ns;
    if (alone <= apart_ns) return idle;
    double gap = apart_ns;
    do {
      gap *= bunch - 1;
      idle += std::max(0.0, alone - gap);
    } while (--left >= 1 && gap < message_ns && gap < alone);
  }
  return idle + left * std::max(0.0, latency_ns - apart_ns - std::max(0.0, share - 2) * message_ns);
}

}  // namespace gccl
