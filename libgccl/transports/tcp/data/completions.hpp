// Transfers that are complete and not yet given to the library, in order.
#pragma once

#include "gccl/backend.h"

namespace gccl::tcp {

class Completions {
 public:
  void add(GCCL_Transfer* t, int result) {
    t->result = result;
    t->next = nullptr;
    (head_ ? tail_->next : head_) = t;
    tail_ = t;
  }
  // True, and then forgotten, when t is all there is.
  bool take_only(const GCCL_Transfer* t) {
    if (head_ != t || tail_ != t) return false;
    head_ = nullptr;
    return true;
  }
  bool empty() const { return !head_; }
  int take(GCCL_Transfer** out, int max) {
    int n = 0;
    while (n < max && head_) {
      out[n++] = head_;
      head_ = head_->next;
    }
    return n;
  }
  void remove(const GCCL_Transfer* t) {
    GCCL_Transfer* before = nullptr;
    for (GCCL_Transfer* i = head_; i; before = i, i = i->next) {
      if (i != t) continue;
      (before ? before->next : head_) = i->next;
      if (tail_ == i) tail_ = before;
      return;
    }
  }

 private:
  GCCL_Transfer *head_ = nullptr, *tail_ = nullptr;
};

}  // namespace gccl::tcp
