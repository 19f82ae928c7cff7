// Transfers that are complete and not yet given to the library, in order.
#pragma once

#include "libgccl/transports/transfer_queue.hpp"

namespace gccl::tcp {

class Completions {
 public:
  void add(GCCL_Transfer* t, int result) {
    t->result = result;
    queue_.push(t);
  }
  // True, and then forgotten, when t is all there is.
  bool take_only(const GCCL_Transfer* t) {
    if (queue_.empty() || queue_.front() != t || queue_.back() != t) return false;
    queue_.pop();
    return true;
  }
  bool empty() const { return queue_.empty(); }
  int take(GCCL_Transfer** out, int max) {
    int n = 0;
    while (n < max && !queue_.empty()) out[n++] = queue_.pop();
    return n;
  }
  void remove(const GCCL_Transfer* t) { queue_.remove(t); }

 private:
  TransferQueue queue_;
};

}  // namespace gccl::tcp
