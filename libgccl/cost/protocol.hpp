// How a library moves the bytes of a call: NCCL's LL, LL128 and Simple, which trade latency for bandwidth.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// Of two rates; 0: takes no time.
inline double slower_GBps(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

// What a protocol adds to the costs of cards and links. All ranks of a call use the same one. The default adds nothing.
struct Protocol {
  // A message's way of one kind, beyond the links themselves.
  struct Way {
    double latency_ns = 0;  // added to every message: flags, fences, proxies
    double efficiency = 1;  // bytes of the message for each byte on the links, above 0, at most 1
  };

  std::string name{};       // empty: the cluster names none
  double operation_ns = 0;  // from a rank's call to its first message: launching a kernel
  Way inside{}, network{};  // of messages between cards of a node; of the others
  double channel_GBps = 0;  // what one channel of a rank sends at most; 0: no limit
  double combine_GBps =
      0;  // what a rank reduces at most, as where vectors are longer than caches; 0: what its card does
  Count channels_max = std::numeric_limits<Count>::max();  // the planner cuts no call up into more channels
  Count bytes_max = std::numeric_limits<Count>::max();     // longer calls (bytes as in nccl-tests) do not use it
  bool in_switch =
      true;  // switches that multicast and reduce can carry its messages: they take no flags beside the data
  bool between_nodes = true;  // else only calls inside one node use it

  const Way& way(bool same_node) const { return same_node ? inside : network; }
};

// Never empty.
using Protocols = std::vector<Protocol>;

}  // namespace gccl
