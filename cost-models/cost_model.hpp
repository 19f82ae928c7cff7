// Alpha-beta-gamma parameters of a machine as one rank sees it, for the closed forms of the algorithms.
// Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994); LogGP's overhead is part of alpha.
#pragma once

#include <algorithm>

#include "libgccl/schedule/call.hpp"

namespace gccl {

using Cost = double;  // nanoseconds

struct Hop {
  double alpha_ns = 0;           // one message's fixed time: both ends' overheads and the latencies on its way
  double beta_ns_per_byte = 0;   // inverse bandwidth of the narrowest link on its way
  Cost operator()(double bytes) const { return alpha_ns + bytes * beta_ns_per_byte; }
};

struct CostModel {
  Hop node;                        // between two ranks of a node
  Hop net;                         // between nodes, while one rank of each node sends
  Hop net_all;                     // between nodes, while every rank of each node sends
  double overhead_ns = 0;          // part of alpha: how long a rank is busy starting one message
  double receive_overhead_ns = 0;  // part of alpha: and taking one that has arrived
  double combine_ns_per_byte = 0;  // gamma: reduction of one incoming byte
  double copy_ns_per_byte = 0;
  double element_bytes = 1;

  double bytes(double count) const { return count * element_bytes; }
  // The least time between two messages of a rank that sends and receives as many.
  double exchange_gap_ns() const { return std::max(overhead_ns, receive_overhead_ns); }
  double combine(double bytes) const { return bytes * combine_ns_per_byte; }
  double copy(double bytes) const { return bytes * copy_ns_per_byte; }
  // The slowest hop of a pattern that crosses nodes at one place of each node (chains, shifts by one).
  const Hop& widest(const View& v) const { return v.nodes > 1 ? net : node; }
  // The hop of an exchange in aligned pairs (rank xor a power of two) in which every rank takes part. Pairs stay on their
  // node where blocks of twice the distance fit a node exactly.
  const Hop& at(const View& v, Count distance) const {
    const bool inside = v.nodes <= 1 || (v.by_node && v.rails % (2 * distance) == 0);
    return inside ? node : v.rails > 1 ? net_all : net;
  }
  // The slowest hop while every rank sends to the one `distance` further on, cyclically: the last ones of each node send
  // to the next node, one rank of it for distance 1.
  const Hop& shift(const View& v, Count distance) const {
    return v.nodes <= 1 ? node : (v.by_node && distance <= 1) || v.rails <= 1 ? net : net_all;
  }
  // `steps` steps of a ring of n ranks, `crossings` of whose hops lead `across` to another node; `combining` is the time each
  // message's way spends in reductions. What arrives goes on at once, so a message's way takes the sum of unlike hops,
  // not n times the slowest; but the slowest hop is never done before it has carried every step's bytes.
  Cost ring(double n, double crossings, const Hop& across, double steps, double bytes, Cost combining) const {
    const Cost way = steps * (crossings * across(bytes) + (n - crossings) * node(bytes)) / n + combining;
    return crossings > 0 ? std::max(way, across.alpha_ns + steps * bytes * across.beta_ns_per_byte) : way;
  }
  // Over all ranks in order.
  Cost ring(const View& v, double steps, double bytes, Cost combining) const {
    const double n = v.all.size, crossings = v.nodes > 1 ? (v.by_node ? v.nodes : n) : 0;
    return ring(n, crossings, net, steps, bytes, combining);
  }
};

}  // namespace gccl
