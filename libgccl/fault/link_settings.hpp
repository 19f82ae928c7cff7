// How a link behaves: its limits and times, and the rules that its guarantees rest on.
#pragma once

#include <cstdint>

#include "libgccl/fault/link_frame.hpp"
#include "libgccl/fault/never.hpp"

namespace gccl::fault {

// The same on both sides.
struct LinkSettings {
  // Payload of a frame at most: what a datagram carries, or what of a stream is checked, and repeated, as one.
  std::uint32_t frame_bytes_max = 1024;
  // Frames that the receiving side keeps for its user at most, and so the sending side has in flight at most.
  std::uint64_t credits = 64;
  // The wire keeps order and loses nothing while it is connected, as TCP does: frames are repeated only on the next
  // connection.
  bool ordered_wire = false;
  bool checksums = true;  // of payloads; headers always have theirs

  // Repetition: RFC 6298's estimate of the round trip, from `rto_first` on, within these bounds; doubled each time.
  Nanos rto_first = 1'000'000'000, rto_min = 1'000'000, rto_max = 60'000'000'000;
  // An acknowledgement waits so long, or for so many frames, for a frame of its own direction that takes it along.
  Nanos acknowledge_after = 500'000;
  std::uint64_t acknowledge_frames = 8;
  // A frame is sent at least so often; 0: only when there is something to say.
  Nanos keep_alive = 0;
  // A peer unheard for so long (only with keep_alive), or a wire broken for so long, is lost; 0: never.
  Nanos lost_after = 0;
};

// What each guarantee rests on, one decision each. A test breaks one at a time, to see that it would notice.
struct LinkRules {
  virtual ~LinkRules() = default;
  // Frames of another epoch never enter this one.
  virtual bool is_current(std::uint32_t frame_epoch, std::uint32_t epoch) const { return frame_epoch == epoch; }
  // `arrived`: every frame below has.
  virtual bool is_duplicate(std::uint64_t sequence, std::uint64_t arrived) const { return sequence < arrived; }
  virtual std::uint64_t acknowledgement(std::uint64_t arrived) const { return arrived; }
  // Whether so many unacknowledged frames are repeated in time.
  virtual bool repeats(std::uint64_t in_flight) const { return in_flight > 0; }
  // `taken`: how many frames the user has taken; of `duplicates` none took room.
  virtual std::uint64_t credit(std::uint64_t taken, std::uint64_t credits, std::uint64_t /*duplicates*/) const {
    return taken + credits;
  }
};

}  // namespace gccl::fault
