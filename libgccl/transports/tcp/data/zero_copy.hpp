// Sending from the user's pages (MSG_ZEROCOPY): saves the copy into the kernel, but completes only when the peer's
// kernel has acknowledged the data. https://docs.kernel.org/networking/msg_zerocopy.html
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>

#include "gccl/backend.h"

namespace gccl::tcp {

class ZeroCopy {
 public:
  // Below this, pinning pages and reading notifications cost more than a copy (the kernel's page says about 10 KB for
  // the pages alone).
  static constexpr std::uint64_t kBytesMin = 128 << 10;

  // Where the kernel has it. `always`: also where it turns out to copy all the same.
  void enable(int fd, bool always);
  bool pays(std::uint64_t bytes) const { return on_ && bytes >= kBytesMin; }
  // As send(2); counts one notification for the transfer, in its backend[kPending].
  ssize_t send(int fd, const void* data, std::size_t bytes, GCCL_Transfer* transfer);
  bool pending() const { return !awaited_.empty(); }
  // Takes one notification from the socket's error queue and calls done(transfer) for each transfer that it lets go of
  // entirely. False when there is none.
  template <class Done>
  bool reap(int fd, Done done) {
    std::uint32_t first, last;
    if (!notification(fd, &first, &last)) return false;
    for (std::uint32_t id = first; id - first <= last - first; ++id)
      if (GCCL_Transfer* t = release(id)) done(t);
    return true;
  }

  // The connection has ended, and with it the kernel's use of the pages: done(transfer) as in reap().
  template <class Done>
  void end(Done done) {
    for (; !awaited_.empty(); awaited_.pop_front())
      if (GCCL_Transfer* const t = awaited_.front(); t && --t->backend[kPending] == 0) done(t);
    first_awaited_ = 0;
    on_ = false;
  }

  // Index into GCCL_Transfer::backend: notifications to come, and stretches of its memory that may have to be sent
  // again (Unacknowledged).
  static constexpr int kPending = 2;

 private:
  bool notification(int fd, std::uint32_t* first, std::uint32_t* last);
  GCCL_Transfer* release(std::uint32_t id);

  bool on_ = false, always_ = false;
  std::uint32_t first_awaited_ = 0;     // id of awaited_.front(); ids wrap
  std::deque<GCCL_Transfer*> awaited_;  // null: notified out of turn
};

}  // namespace gccl::tcp
