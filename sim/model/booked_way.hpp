// A way that messages of one rank have for themselves, with the times of ModelNetwork.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/engine/network.hpp"
#include "sim/model/long_messages.hpp"

namespace gccl::sim {

// Way of UnsharedRun. Short messages pass each link one after the other. A long one is booked whole, as it is alone,
// and the next one follows when its end has passed the first link.
class BookedWay {
 public:
  BookedWay(const Cluster& cluster, const std::vector<LinkId>& route) {
    for (const LinkId l : route) {
      const Link& link = cluster.links()[l];
      links_.push_back({1 / link.bandwidth_GBps, link.latency_ns});
      latency_ += link.latency_ns;
    }
  }

  bool measure(Count bytes, Nanos least_ns) {
    const Kind kind = bytes > LongMessages::kAbove ? Kind::longer : Kind::shorter;
    if (kind_ == Kind::any) kind_ = kind;
    least_ = least_ns;
    longest_ = 0;
    for (Place& link : links_) {
      link.takes = duration(double(bytes) * link.ns_per_byte);
      longest_ = std::max(longest_, link.takes);
    }
    return kind_ == kind;
  }

  Nanos pass(Nanos at) {
    Nanos head = at, tail = at + least_;
    if (kind_ == Kind::longer) {
      until_ = std::max(at, until_) + longest_;
      return std::max(tail, until_) + latency_;
    }
    for (Place& link : links_) {
      const Nanos start = std::max(head, link.free);
      link.free = start + link.takes;
      head = start + link.latency;
      tail = std::max(tail, link.free) + link.latency;
    }
    return tail;
  }

 private:
  enum class Kind : std::uint8_t { any, shorter, longer };
  struct Place {
    double ns_per_byte;
    Nanos latency;
    Nanos takes = 0, free = 0;  // for a message as long as the last one; when it can pass the next
  };
  Kind kind_ = Kind::any;  // of all messages: mixed ones wait for each other in more ways
  std::vector<Place> links_;
  Nanos latency_ = 0, least_ = 0, longest_ = 0;
  Nanos until_ = 0;  // when the last long one has passed the first link
};

}  // namespace gccl::sim
