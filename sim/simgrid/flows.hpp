// Flows of bytes over shared links, played by SimGrid's max-min solver. Everything that names SimGrid is behind this.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/engine/network.hpp"
#include "sim/simgrid/instant.hpp"

namespace gccl::sim {

// One SimGrid link per link of the cluster; a flow holds the links of its route from its start to its end, and the
// solver gives all flows their max-min fair rates. Latencies are not SimGrid's business: a message enters the network
// after them (see SimGridNetwork), so every flow weighs the same, whatever the length of its route. (SimGrid's TCP
// models give a flow a share in inverse proportion to its latency; hardware of a cluster's fabric does not.)
//
// SimGrid allows one platform in the life of a process: constructing a second Flows throws std::logic_error.
class Flows {
 public:
  static constexpr Nanos kTimeMax = kClockMax;
  using Overflow = ClockOverflow;

  // Throws std::logic_error the second time, std::runtime_error when SimGrid does not behave as it was checked to.
  explicit Flows(const Links& links);
  ~Flows();
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  bool idle() const { return active_ == 0; }

  // A flow begins at `now` or, when SimGrid's clock is past that by a rounding error, at once, and takes at least
  // least_ns. Requires route and bytes not empty, and `now` not before the last instant that advance() returned.
  void start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns, Nanos now);

  // Plays until the first instant in which flows end, or until `limit` (< 0: no limit), whichever is earlier. Appends
  // the ids of the flows that ended, and returns the instant. Requires !idle(). Throws std::runtime_error when no flow
  // can ever end.
  Nanos advance(Nanos limit, std::vector<EventId>& ended);

 private:
  struct Platform;
  std::unique_ptr<Platform> platform_;
  std::size_t active_ = 0;
};

}  // namespace gccl::sim
