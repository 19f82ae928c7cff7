// Point-to-point operations in flight, in the order of their starts. Each is taken out in the same time wherever it
// stands: thousands are in flight at once, and end in another order than they began in.
#pragma once

#include <cassert>
#include <iterator>

#include "libgccl/communicator/operation.hpp"

namespace gccl {

class Transfers {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Operation*;

    Iterator() = default;
    explicit Iterator(Operation* op) : op_(op) {}
    Operation* operator*() const { return op_; }
    Iterator& operator++() {
      op_ = op_->later;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Operation* op_ = nullptr;
  };

  bool empty() const { return !first_; }
  Operation* front() const { return first_; }
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return {}; }

  void push_back(Operation* op) noexcept {
    assert(!holds(op));
    op->earlier = last_;
    (last_ ? last_->later : first_) = op;
    last_ = op;
  }
  bool holds(const Operation* op) const { return op == first_ || op->earlier; }
  void erase(Operation* op) noexcept {
    assert(holds(op));
    (op->earlier ? op->earlier->later : first_) = op->later;
    (op->later ? op->later->earlier : last_) = op->earlier;
    op->earlier = op->later = nullptr;
  }

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
};

}  // namespace gccl
