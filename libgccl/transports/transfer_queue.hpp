// A transport's transfers in the order in which they were begun.
#pragma once

#include "gccl/backend.h"

namespace gccl {

// Strung together by GCCL_Transfer::next, so a transfer is in one queue at a time, and no operation needs memory.
class TransferQueue {
 public:
  bool empty() const { return !head_; }
  GCCL_Transfer* front() const { return head_; }
  // Of a queue that is not empty.
  GCCL_Transfer* back() const { return tail_; }

  void push(GCCL_Transfer* t) {
    t->next = nullptr;
    (head_ ? tail_->next : head_) = t;
    tail_ = t;
  }
  // Takes the front away, which must be there.
  GCCL_Transfer* pop() {
    GCCL_Transfer* const t = head_;
    head_ = t->next;
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
  GCCL_Transfer *head_ = nullptr, *tail_ = nullptr;  // the tail counts only where there is a head
};

}  // namespace gccl
