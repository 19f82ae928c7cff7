// The values of a parameter set that measurements may change.
#pragma once

#include <string>
#include <vector>

#include "libgccl/cluster/read/parameters.hpp"

namespace gccl::sim {

// As few digits as read back to less than a part in 10,000: how values are written.
double rounded(double v);

// One value and the bounds within which it may be fitted. The way back of a link keeps its ratio to the way forward.
struct Adjustable {
  enum class What : std::uint8_t {
    overhead,
    receive_overhead,
    combine,
    copy,
    latency,
    bandwidth,
    operation,
    inside_latency,
    network_latency,
    inside_efficiency,
    network_efficiency,
    channel,
    combine_most,
    fresh
  };
  What what{};
  std::string of;  // the link of latency and bandwidth, the protocol of those behind them
  double least = 0, most = 0;
  double offset = 0;  // a search goes by log(value + offset): times may begin at 0

  std::string name() const;  // "card/overhead_ns", "links/nic/latency_ns", "protocols/LL/operation_ns"
  double value(const Parameters& p) const;
  void set(Parameters& p, double exact) const;  // as it will be written, so that a fit looks at no other set
};

// The parameters of a set that cost something (a rate of 0 is free, and stays so). Where it names protocols, their
// latencies stand for those of links, which messages have in addition. No bound is beyond what a set may hold.
std::vector<Adjustable> adjustables_of(const Parameters& p);

}  // namespace gccl::sim
