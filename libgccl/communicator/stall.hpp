// Whether the first operation in flight still moves.
#pragma once

#include <utility>

#include "libgccl/communicator/operation.hpp"

namespace gccl {

class Stall {
 public:
  // True where it has not moved for `limit_ns`, and the last time that this was true is some time ago.
  bool lasts(const Operation& op, std::int64_t now_ns, std::int64_t limit_ns) {
    constexpr std::int64_t kPauseNs = 1'000'000;
    const std::uint64_t moved = op.moved();
    if (&op != operation_ || moved != moved_) {
      operation_ = &op;
      moved_ = moved;
      since_ns_ = now_ns;
      return false;
    }
    if (now_ns - since_ns_ < limit_ns || now_ns - told_ns_ < kPauseNs) return false;
    told_ns_ = now_ns;
    told_ = true;
    return true;
  }
  // An operation has ended. True where lasts() has been true of it.
  bool ended(const Operation* op) {
    if (op != operation_) return false;
    operation_ = nullptr;
    return std::exchange(told_, false);
  }

 private:
  const Operation* operation_ = nullptr;
  std::uint64_t moved_ = 0;
  std::int64_t since_ns_ = 0, told_ns_ = 0;
  bool told_ = false;
};

}  // namespace gccl
