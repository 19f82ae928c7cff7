// Messages of a rank to itself: copied when both sides are there.
#pragma once

#include <deque>

#include "libgccl/communicator/operation.hpp"

namespace gccl {

// With the communicator's lock held.
class SelfMessages {
 public:
  // The operation that has waited for this one, now copied: both are over. Null where this one waits now; not ok in
  // *why where the two differ, and both wait.
  Operation* meet(Operation* op, const Members& members, Status* why);
  // Sends, or receives, whose other side has not come.
  std::deque<Operation*>& waiting() { return waiting_; }
  const std::deque<Operation*>& waiting() const { return waiting_; }

 private:
  std::deque<Operation*> waiting_;
};

}  // namespace gccl
