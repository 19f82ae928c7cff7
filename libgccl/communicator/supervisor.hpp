// Whether something is wrong with what is in flight, looked for while nothing moves: a peer that has gone, a time
// limit, calls that differ, a dump that is asked for.
#pragma once

#include <algorithm>
#include <atomic>

#include "libgccl/communicator/operations.hpp"

namespace gccl {

// Time limits are at most a year, so that no sum with them overflows.
inline constexpr std::int64_t kTimeoutMsMax = std::int64_t(1000) * 86400 * 365;

// With the communicator's lock held, the time limit apart.
class Supervisor {
 public:
  // Both outlive it.
  Supervisor(Team& team, Operations& operations) : team_(team), operations_(operations) {}

  // Ends everything in flight where something is wrong.
  void check() noexcept;
  // The same for a thread that polls, which comes here a million times a second: the check asks the operating system
  // about every peer.
  void check_at_times();
  // Nothing is in flight here, and a thread waits elsewhere: a message that this rank is through with may have to be
  // sent again.
  void serve_at_times() noexcept;
  // A thread agrees with the other ranks on who has failed, and this rank knows of nobody: what they ask is answered.
  // Call now and then; `in` is nothing at the end. Not ok: the communicator was aborted, or a rank does not come.
  Status agrees(Watch::In in);
  // A thread does nothing else until that operation has ended.
  void thread_blocks(Operation& op) {
    op.blocking = true;
    ++waits_;
  }

  // For which a thread waits: a message, or what is first of the collectives and so holds up the one that is waited
  // for. Null where no thread waits.
  const Operation* awaited() const;

  // The communicator has other ranks, and perhaps another detector.
  void look_again() { news_ = 0; }

  // In milliseconds, of each operation, from when those before it are over; negative: none.
  void set_timeout(std::int64_t ms) { timeout_ms_.store(std::min(ms, kTimeoutMsMax), std::memory_order_relaxed); }
  std::int64_t timeout_ms() const { return timeout_ms_.load(std::memory_order_relaxed); }

 private:
  void check_peers_and_time();
  void ask_after_peers();
  bool timed_out(const Operation& op, std::int64_t since_ns, std::int64_t now);
  void watch_stall();

  Team& team_;
  Operations& operations_;
  std::atomic<std::int64_t> timeout_ms_{GCCL_TIMEOUT_NONE};
  std::uint32_t waits_ = 0;      // of threads that blocked, so far
  std::int64_t checked_ns_ = 0;  // when polls last did
  std::int64_t asked_after_peers_ns_ = 0;
  std::uint32_t news_ = 0;  // the detector's that were looked at
};

}  // namespace gccl
