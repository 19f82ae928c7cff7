// Why a communicator carries nothing out any more.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "gccl/gccl.h"
#include "libgccl/base/status.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

// The first reason stays. All but the abort with the communicator's lock held.
class Failure {
 public:
  bool none() const { return why_.ok(); }
  const Status& why() const { return why_; }
  void set(Status why) { why_ = std::move(why); }

  // A call has returned it. An operation's end tells its caller; what nobody has been told is told when the
  // communicator is freed.
  void acknowledge() { acknowledged_ = true; }
  const Status& returned() {
    acknowledged_ = true;
    return why_;
  }
  Status unless_acknowledged() { return std::exchange(acknowledged_, true) ? Status() : why_; }

  // GCCL_Abort, from any thread: whoever makes progress next breaks the communicator.
  void ask_abort(int code) {
    code_.store(code, std::memory_order_relaxed);
    asked_.store(true, std::memory_order_release);
  }
  bool abort_asked() const { return asked_.load(std::memory_order_relaxed); }
  Status aborted(Rank rank) const { return Status::error(abort_text(rank, code_.load()), GCCL_ERR_ABORTED); }
  static std::string abort_text(Rank rank, int code) {
    return "GCCL_Abort was called on rank " + std::to_string(rank) + " with code " + std::to_string(code);
  }

 private:
  Status why_;
  bool acknowledged_ = false;
  std::atomic<bool> asked_{false};
  std::atomic<int> code_{0};
};

}  // namespace gccl
