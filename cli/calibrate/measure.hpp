// Timing messages between a few ranks, as collectives send them: a broadcast by "direct" of two ranks is one message.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/bench/job.hpp"
#include "sim/measured/calibration/curve.hpp"

namespace gccl::calibrate {

// A rank's buffers for messages both ways; touched once, so that no page is new while it is timed.
class Buffers {
 public:
  explicit Buffers(std::size_t bytes) : input_(bytes, std::byte(1)), output_(bytes, std::byte(2)) {}
  std::byte* input() { return input_.data(); }
  std::byte* output() { return output_.data(); }
  std::size_t size() const { return input_.size(); }

 private:
  std::vector<std::byte> input_, output_;
};

// All of these are called by every rank of `group`; rank 0 has the result, the others an empty curve. They go round the
// amounts until `seconds` are over, and at least a few times.

// Half a round trip between the two ranks, by bytes. With `pairs`, which are several such groups: that of the first
// of them, while all send in the same direction at a time. By themselves half of them would send each way, and have
// twice the bandwidth of a link that carries as much in either direction.
sim::Curve ping_pong(bench::Job& group, Buffers& buffers, const std::vector<double>& bytes, double seconds,
                     bench::Job* pairs = nullptr);

// From one call to the next while one rank sends `bytes` to each of its peers, or takes as many from each, over and
// over, by the number of peers: groups[i], of peers[i] + 1 ranks, may be null where this rank is not in it.
struct Fans {
  sim::Curve out, in, out_long, in_long;
};
Fans fans(const std::vector<bench::Job*>& groups, bench::Job& widest, Buffers& buffers, double bytes_short,
          double bytes_long, double seconds);

// Sums of 32-bit floats, and copies, of so many bytes; by this rank alone, at the same time as the others of `group`.
struct Rates {
  sim::Curve combine, copy;
};
Rates rates(bench::Job& group, Buffers& buffers, const std::vector<double>& bytes, double seconds);

}  // namespace gccl::calibrate
