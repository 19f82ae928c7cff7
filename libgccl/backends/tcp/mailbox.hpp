// What the connector's thread hands to a port: connections that are ready, and faults.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/net/socket.hpp"

namespace gccl::tcp {

// A connected, authenticated socket for one stream of a link.
struct Arrival {
  Fd fd;
  std::uint32_t peer = 0, channel = 0, stream = 0, streams = 1;
};

// Which port it is for: what callers are checked against.
struct PortIdentity {
  std::uint64_t communicator = 0;
  std::uint32_t rank = 0, size = 0, channels = 0;
  std::vector<std::uint32_t> world_rank;
};

class Mailbox {
 public:
  explicit Mailbox(PortIdentity identity) : identity_(std::move(identity)) {}

  const PortIdentity& identity() const { return identity_; }
  // Any thread.
  void put(Arrival arrival) {
    const std::lock_guard lock(mutex_);
    arrivals_.push_back(std::move(arrival));
    full_.store(true, std::memory_order_release);
  }
  // The first fault counts. `told`: the peer that brought it has told every rank.
  void put(const GCCL_Fault& fault, bool told) {
    const std::lock_guard lock(mutex_);
    if (fault_.result == GCCL_SUCCESS) fault_ = fault, told_ = told;
    full_.store(true, std::memory_order_release);
  }
  // Cheap enough for every poll.
  bool full() const { return full_.load(std::memory_order_acquire); }
  // fault->result is GCCL_SUCCESS when there is none.
  std::vector<Arrival> take(GCCL_Fault* fault) {
    const std::lock_guard lock(mutex_);
    full_.store(false, std::memory_order_relaxed);
    *fault = fault_;
    return std::exchange(arrivals_, {});
  }
  bool told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  const PortIdentity identity_;
  mutable std::mutex mutex_;
  std::vector<Arrival> arrivals_;
  GCCL_Fault fault_{};
  bool told_ = false;
  std::atomic<bool> full_{false};
};

}  // namespace gccl::tcp
