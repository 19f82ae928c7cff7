// Transfers of one direction of a link, numbered in the order in which they were begun.
#pragma once

#include <cstdint>

#include "libgccl/transports/transfer_queue.hpp"

namespace gccl::tcp {

// A transfer's number is in backend[kSequence].
class NumberedQueue : TransferQueue {
 public:
  static constexpr int kSequence = 3;

  using TransferQueue::empty;
  using TransferQueue::front;
  using TransferQueue::remove;
  // The number of the next transfer to come.
  std::uint32_t next_sequence() const { return next_sequence_; }

  void push(GCCL_Transfer* t) {
    t->backend[kSequence] = next_sequence_++;
    TransferQueue::push(t);
  }
  GCCL_Transfer* find(std::uint32_t sequence) const {
    GCCL_Transfer* t = front();
    while (t && std::uint32_t(t->backend[kSequence]) != sequence) t = t->next;
    return t;
  }

 private:
  std::uint32_t next_sequence_ = 0;
};

}  // namespace gccl::tcp
