// When the latest collectives of a communicator began and ended, and by which algorithm: with the history (history.hpp)
// that is its flight recorder. What was in flight when it failed stays here, too.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/ticks.hpp"
#include "libgccl/communicator/record/dump.hpp"
#include "libgccl/communicator/watch/history.hpp"

namespace gccl {

// With the communicator's lock held. A look at the processor's counter takes a tenth of the shortest call: of those of
// the short way each eighth is looked at, the same on every rank, and one that does not end at once.
class Flight {
 public:
  struct Times {
    std::uint64_t began = 0, ended = 0;  // ticks; 0 where it has not, or nobody looked
    const char* algorithm = nullptr;     // null: not chosen yet
  };
  void began(std::uint32_t sequence, const char* algorithm) {
    of_[sequence % History::kKept] = {.began = ticks(), .ended = 0, .algorithm = algorithm};
  }
  void began_short(std::uint32_t sequence, const char* algorithm) {
    of_[sequence % History::kKept] = {
        .began = sequence % kShortLooked == 0 ? ticks() : 0, .ended = 0, .algorithm = algorithm};
  }
  // It goes the long way now.
  void goes_on(std::uint32_t sequence) {
    Times& t = of_[sequence % History::kKept];
    if (t.began == 0) t.began = ticks();
  }
  void carried_out(std::uint32_t sequence, const char* algorithm) {
    of_[sequence % History::kKept].algorithm = algorithm;
  }
  // A call whose lengths differ by rank: what it moves in all, where the history has a checksum of the lengths.
  void lengths(std::uint32_t sequence, std::uint64_t elements) { elements_[sequence % History::kKept] = elements; }
  std::uint64_t elements(std::uint32_t sequence) const { return elements_[sequence % History::kKept]; }
  void ended(std::uint32_t sequence) { of_[sequence % History::kKept].ended = ticks(); }
  // Requires that the history keeps the call.
  const Times& of(std::uint32_t sequence) const { return of_[sequence % History::kKept]; }

  // A thread polls for what is in flight.
  void polled(std::int64_t now_ns) { polled_ns_ = now_ns; }
  // The communicator fails.
  void stopped(std::int64_t now_ns) { unpolled_ns_ = now_ns - polled_ns_; }
  // For so long no thread had polled then.
  std::int64_t unpolled_ns() const { return unpolled_ns_; }

  // The communicator has failed, and neither this collective nor a later one has completed.
  void failed(std::uint32_t sequence) noexcept { failed_from_ = std::min(failed_from_, sequence); }
  bool completed(std::uint32_t sequence) const { return sequence < failed_from_; }
  // What was in flight then.
  struct Unended {
    std::vector<DumpedCall> calls, transfers;
  };
  void keep(Unended&& unended) noexcept { unended_ = std::move(unended); }
  const Unended& unended() const { return unended_; }

 private:
  static constexpr std::uint32_t kShortLooked = 8;
  std::array<Times, History::kKept> of_{};
  std::array<std::uint64_t, History::kKept> elements_{};
  std::uint32_t failed_from_ = UINT32_MAX;
  Unended unended_;
  std::int64_t polled_ns_ = now_ns(), unpolled_ns_ = 0;
};

}  // namespace gccl
