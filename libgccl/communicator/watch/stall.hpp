// Whether an operation still moves.
#pragma once

#include <cstdint>

namespace gccl {

class Stall {
 public:
  // True where the operation, which has moved so far, has not moved for `limit_ns`, and the last time that this was
  // true is some time ago.
  bool lasts(std::uint64_t moved, std::int64_t now_ns, std::int64_t limit_ns) {
    constexpr std::int64_t kPauseNs = 1'000'000;
    if (since_ns_ == 0 || moved != moved_) {
      moved_ = moved;
      since_ns_ = now_ns;
      return false;
    }
    if (now_ns - since_ns_ < limit_ns || now_ns - reported_ns_ < kPauseNs) return false;
    reported_ns_ = now_ns;
    return true;
  }
  // lasts() has been true.
  bool reported() const { return reported_ns_ != 0; }

 private:
  std::uint64_t moved_ = 0;
  std::int64_t since_ns_ = 0, reported_ns_ = 0;  // 0: never
};

}  // namespace gccl
