// Waiting at one socket, for so long.
#pragma once

#include <poll.h>

#include <cerrno>

#include "libgccl/bootstrap/deadline.hpp"

namespace gccl {

// False once the deadline has passed. Then, too, it is looked once: this process itself may not have run.
inline bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, deadline.poll_ms());
    if (n > 0) return true;
    if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
  }
}

}  // namespace gccl
