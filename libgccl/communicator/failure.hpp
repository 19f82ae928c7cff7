// Why a communicator carries nothing out any more. It stays so, unless it is made anew (survival.hpp): after a
// mismatch, a lost peer or a timeout the ranks no longer agree on where they are.
#pragma once

#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/base/status.hpp"
#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

// The first reason stays. All but the abort with the communicator's lock held.
class Failure {
 public:
  // Whether a call has returned it. Operations share it, as they may outlive their communicator.
  using Said = std::shared_ptr<std::atomic<bool>>;

  bool none() const { return why_.ok(); }
  const Status& why() const { return why_; }
  // `ranks`, of the world: where it is about several.
  void set(Status why, Rank culprit, std::vector<Rank> ranks = {}) {
    why_ = std::move(why);
    culprit_ = culprit;
    ranks_ = std::move(ranks);
    stops_.fetch_or(kFailed, std::memory_order_relaxed);
  }
  Rank culprit() const { return culprit_; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  // The communicator goes on.
  void forget() noexcept {
    why_ = {};
    stops_.fetch_and(~kFailed, std::memory_order_relaxed);
    try {
      said_ = std::make_shared<std::atomic<bool>>(false);
    } catch (...) {  // operations that failed earlier share it with those that fail later
      said_->store(false, std::memory_order_relaxed);
    }
  }

  // What no call has returned is returned when the communicator is freed.
  const Said& said() const { return said_; }
  void acknowledge() { said_->store(true, std::memory_order_relaxed); }
  Status returned() noexcept {
    acknowledge();
    return why_.copy_or_code();
  }
  Status unless_said() noexcept {
    return why_.ok() || said_->exchange(true, std::memory_order_relaxed) ? Status() : why_.copy_or_code();
  }

  // GCCL_Abort, from any thread: the thread that makes progress next breaks the communicator.
  void ask_abort(int code) {
    code_.store(code, std::memory_order_relaxed);
    stops_.fetch_or(kAbort, std::memory_order_release);
  }
  bool abort_asked() const { return (stops_.load(std::memory_order_relaxed) & kAbort) != 0; }
  // It has failed, or an abort is asked for: nothing begins. One load, for the shortest calls.
  bool stopped() const { return stops_.load(std::memory_order_relaxed) != 0; }
  // By this rank of them.
  Status aborted(const Members& members) const noexcept {
    return Status::error_or_code(abort_by(members, code_.load()).text, GCCL_ERR_ABORTED);
  }
  // Needs no memory.
  static GCCL_Fault abort_by(const Members& members, int code) noexcept {
    const Rank rank = members.rank, world = members.world_rank[rank];
    GCCL_Fault f{.result = GCCL_ERR_ABORTED, .peer = rank, .text = {}};
    char in_world[32] = "";
    if (world != rank) std::snprintf(in_world, sizeof in_world, " (world rank %u)", world);
    std::snprintf(f.text, sizeof f.text, "GCCL_Abort was called on rank %u%s with code %d", rank, in_world, code);
    return f;
  }

 private:
  Status why_;
  Rank culprit_ = 0;
  std::vector<Rank> ranks_;
  Said said_ = std::make_shared<std::atomic<bool>>(false);
  static constexpr std::uint32_t kFailed = 1, kAbort = 2;
  std::atomic<std::uint32_t> stops_{0};
  std::atomic<int> code_{0};
};

}  // namespace gccl
