// Messages of a rank to itself: copied when both sides are there; short ones are over when they are sent.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "libgccl/communicator/operation.hpp"

namespace gccl {

// With the communicator's lock held.
class SelfMessages {
 public:
  // Whether this operation is over; *other is one that has waited for it, and is over, too. Otherwise it waits now,
  // also where the two differ, in *why.
  bool meet(Operation* op, const Members& members, Operation** other, Status* why);
  // A send that waited and is over now, as a receive has made room; null where there is none. Call until then.
  Operation* keep_waiting() noexcept;
  // Sends, or receives, whose other side has not come.
  std::deque<Operation*>& waiting() { return waiting_; }
  const std::deque<Operation*>& waiting() const { return waiting_; }
  // Messages that nobody has received, and whose sends are over.
  void forget_kept() noexcept {
    kept_.clear();
    kept_bytes_ = 0;
  }

 private:
  // Of a send that is over.
  struct Message {
    Descriptor what;
    std::vector<std::byte> bytes;
  };

  bool keep(const Work& sent);

  std::deque<Message> kept_;  // sent before those that wait
  std::size_t kept_bytes_ = 0;
  std::deque<Operation*> waiting_;
};

}  // namespace gccl
