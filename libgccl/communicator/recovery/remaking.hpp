// How the members of an epoch make a communicator together, with whom else it may be: what shrinking and growing have
// in common, of which each says the rest. Known to these two alone.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/recovery/recovery.hpp"

namespace gccl {

// Exchanges among the members of the epoch, over datagrams.
class Recovery::Over : public Exchange {
 public:
  // Not beyond that time, nor beyond GCCL_Abort on `of`, where there is one.
  Over(Recovery& recovery, Group& group, std::int64_t until_ns, const CommunicatorCore* of)
      : recovery_(recovery), group_(group), epoch_(group.membership->epoch()), until_ns_(until_ns), of_(of) {}
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override;
  // What each of them says, by its rank in the group. One byte at least, and no more than a datagram takes.
  Status gather(std::span<const std::byte> mine, std::map<Rank, std::vector<std::byte>>* all, std::int64_t timeout_ms);
  // Not ok: none of its exchanges can succeed any more.
  Status goes_on();

 private:
  // With the lock held.
  Status over() const;

  Recovery& recovery_;
  Group& group_;
  const fault::Epoch epoch_;
  const std::int64_t until_ns_;
  const CommunicatorCore* const of_;
};

class Recovery::Making {
 public:
  virtual ~Making() = default;
  virtual fault::Call call() const = 0;
  virtual Watch::In in() const = 0;
  // Makes it, of those that are left of the group and perhaps others. `m`: those that are left, alone. Without the
  // lock.
  virtual Status make(const Members& group, Members m, Over& over, std::unique_ptr<CommunicatorCore>* out) = 0;
  // After that: another try may go better, though none of the members has failed.
  virtual bool again() const { return false; }
  // All members have `made`, or none. Without the lock.
  virtual void all_have(CommunicatorCore& made, std::uint64_t flags) { (void)made, (void)flags; }
  virtual void none_has() {}
  // After that, on all members alike: nobody has failed, and no try will go better. True: without others it may, once.
  virtual bool makes_do(const Status& why) {
    (void)why;
    return false;
  }
};

}  // namespace gccl
