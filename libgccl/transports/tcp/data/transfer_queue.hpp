// Transfers of one direction of a link, numbered in the order in which they were begun.
#pragma once

#include <cstdint>

#include "gccl/backend.h"

namespace gccl::tcp {

// Strung together by GCCL_Transfer::next; the number is in backend[kSequence].
class TransferQueue {
 public:
  static constexpr int kSequence = 3;

  bool empty() const { return !head_; }
  GCCL_Transfer* front() const { return head_; }
  // The number of the next transfer to come.
  std::uint32_t next_sequence() const { return next_sequence_; }

  void push(GCCL_Transfer* t) {
    t->next = nullptr;
    t->backend[kSequence] = next_sequence_++;
    (head_ ? tail_->next : head_) = t;
    tail_ = t;
  }
  GCCL_Transfer* find(std::uint32_t sequence) const {
    GCCL_Transfer* t = head_;
    while (t && std::uint32_t(t->backend[kSequence]) != sequence) t = t->next;
    return t;
  }
  // False when it is not here.
  bool remove(const GCCL_Transfer* t) {
    GCCL_Transfer* before = nullptr;
    for (GCCL_Transfer* i = head_; i; before = i, i = i->next) {
      if (i != t) continue;
      (before ? before->next : head_) = i->next;
      if (tail_ == i) tail_ = before;
      return true;
    }
    return false;
  }

 private:
  GCCL_Transfer *head_ = nullptr, *tail_ = nullptr;
  std::uint32_t next_sequence_ = 0;
};

}  // namespace gccl::tcp
