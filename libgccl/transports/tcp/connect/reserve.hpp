// A descriptor that is kept for what has to be possible when the process has no other left: to say that a call has
// failed, and to hear it.
#pragma once

#include <fcntl.h>

#include "libgccl/net/socket.hpp"

namespace gccl::tcp {

class Reserve {
 public:
  // Takes it, where it is not held. False: there is none to be had.
  bool hold() {
    if (!fd_) fd_ = not_for_children([] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); });
    return held();
  }
  bool held() const { return bool(fd_); }
  // Frees it for the call that comes next. False: it is in use, or somebody else has it.
  bool give() {
    if (!fd_) return false;
    fd_.reset();
    return true;
  }

 private:
  Fd fd_;
};

}  // namespace gccl::tcp
