// A descriptor that is kept for what has to be possible when the process has no other left: to say that a call has
// failed, and to hear it. Between one use and the next nothing else in this library can take it.
#pragma once

#include <sys/eventfd.h>

#include "libgccl/net/socket.hpp"

namespace gccl::tcp {

class Reserve {
 public:
  // Takes it, where it is not held. False: there is none to be had.
  bool hold() {
    if (!fd_) fd_ = not_for_children([] { return ::eventfd(0, EFD_CLOEXEC); });
    return bool(fd_);
  }
  // Frees it for open(), which returns whether it has taken one. False too: it is in use, or somebody else has it.
  template <class Open>
  bool borrow(Open open) {
    const ProcessLock alone;
    if (!hold()) return false;
    fd_.reset();
    if (open()) return true;
    hold();
    return false;
  }
  // end() closes what may have it.
  template <class End>
  void take_back(End end) {
    const ProcessLock alone;
    end();
    hold();
  }

 private:
  Fd fd_;
};

}  // namespace gccl::tcp
