// A way that messages of one rank have for themselves, with the times of SharedNetwork<FairFlows>.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/engine/network.hpp"

namespace gccl::sim {

// Way of UnsharedRun. A message waits for the latencies, and for the one before; then it flows at its own bound or its
// narrowest link's bandwidth. Flows end between two nanoseconds, and what comes in turn begins there.
class FairWay {
 public:
  FairWay(const Cluster& cluster, const std::vector<LinkId>& route) {
    for (const LinkId l : route) {
      const Link& link = cluster.links()[l];
      capacity_ = std::min(capacity_, link.bandwidth_GBps);
      latency_ += link.latency_ns;
    }
  }

  bool measure(Count bytes, Nanos least_ns) {
    const double bound = least_ns > 0 ? double(bytes) / double(least_ns) : std::numeric_limits<double>::infinity();
    takes_ = bytes > 0 ? double(bytes) / std::min(capacity_, bound) : 0;
    return true;
  }

  Nanos pass(Nanos at) {
    until_ = std::max(double(at + latency_), until_) + takes_;
    return nearest_ns(until_);
  }

 private:
  double capacity_ = std::numeric_limits<double>::infinity(), takes_ = 0;
  Nanos latency_ = 0;
  double until_ = 0;  // when the last one has flowed
};

}  // namespace gccl::sim
