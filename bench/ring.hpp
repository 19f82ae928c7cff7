// The machine of both engines' benchmarks, so that their simulated times can be compared.
#pragma once

#include "libgccl/cluster/fabrics/star.hpp"

namespace gccl::sim {

constexpr double kRingGBps = 50;
constexpr Nanos kRingLatency = 500;  // of each of a message's two links
constexpr CardCosts kRingCosts{.overhead_ns = 200, .receive_overhead_ns = 200};

inline Star ring_star(Card cards) { return Star(cards, kRingGBps, kRingLatency, kRingCosts); }
inline void print_ring_star() {
  std::printf("star: %g GB/s and %lld ns per link, overheads %lld + %lld ns, combining free\n", kRingGBps,
              (long long)kRingLatency, (long long)kRingCosts.overhead_ns, (long long)kRingCosts.receive_overhead_ns);
}

}  // namespace gccl::sim
