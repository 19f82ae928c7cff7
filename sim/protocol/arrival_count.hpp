// What one end of a simulated link sees of it, as fault::Arrivals says it.
#pragma once

#include <algorithm>
#include <utility>

#include "libgccl/fault/arrivals.hpp"
#include "libgccl/fault/link_frame.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

// In virtual time a process takes each frame when it comes, and all of a message is left to the link at once. So within
// a long message its receiver waits for the link from one frame to the next, unless a process was stopped.
class ArrivalCount {
 public:
  // The next part of a message, of whose payload a byte stands for `share` of the elements' bytes.
  void came(const fault::LinkFrame& f, double share, Nanos now) {
    const auto of = [share](std::uint64_t payload) { return std::uint64_t(double(payload) * share + 0.5); };
    const std::uint64_t bytes = of(f.message_bytes);
    if (bytes < fault::Arrivals::kLongBytes) return;
    if (f.offset == 0) {
      first_ = last_ = now;
      first_bytes_ = f.bytes;
    }
    seen_.waited_ns += std::uint64_t(now - last_);
    last_ = now;
    if (!f.ends_message()) return;
    seen_.bytes += bytes;
    const std::uint64_t later = of(f.message_bytes - first_bytes_);
    if (later >= fault::Arrivals::kBestBytes && now > first_)
      seen_.best = std::max(seen_.best, std::uint64_t(double(later) / double(now - first_) * 1e9));
  }
  void sent(std::uint64_t bytes) {
    if (bytes >= fault::Arrivals::kLongBytes) seen_.sent += bytes;
  }
  // Its process was stopped for so long; `pending`: with messages of its own on their way.
  void stood(Nanos time, bool pending) {
    first_ += time;
    last_ += time;
    if (pending) seen_.away_ns += std::uint64_t(time);
  }
  // What has been seen since the last time.
  fault::Arrivals take() { return std::exchange(seen_, {}); }

 private:
  Nanos first_ = 0, last_ = 0;  // parts of the message that is coming
  std::uint64_t first_bytes_ = 0;
  fault::Arrivals seen_;
};

}  // namespace gccl::sim
