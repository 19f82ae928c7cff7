// Connections that were refused, reported on standard error without letting a flood of them fill it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "libgccl/net/socket.hpp"

namespace gccl {

// Not thread-safe.
class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned kLinesPerPeriod = 10;
  static constexpr std::chrono::seconds kPeriod{10};

  // `who` begins every line, such as "rank 0, store"; `write` gets lines without newline; by default they are warnings
  // (log.hpp).
  explicit RefusalLog(std::string who, std::function<void(const std::string&)> write = {});

  // One line "WHO: refused ADDRESS: REASON", or a count of what was not reported.
  void refused(const SocketAddress& peer, const std::string& reason, Clock::time_point now = Clock::now());

 private:
  std::string who_;
  std::function<void(const std::string&)> write_;
  Clock::time_point period_begin_{};
  unsigned lines_ = 0;
  std::uint64_t unreported_ = 0;
};

}  // namespace gccl
