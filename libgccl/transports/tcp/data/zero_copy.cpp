#include "libgccl/transports/tcp/data/zero_copy.hpp"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace gccl::tcp {

void ZeroCopy::enable(int fd, bool always) {
  const int yes = 1;
  on_ = setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof yes) == 0;
  always_ = always;
}

ssize_t ZeroCopy::send(int fd, const void* data, std::size_t bytes, GCCL_Transfer* transfer) {
  const ssize_t n = ::send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY);
  // Too many notifications outstanding (net.core.optmem_max), or pages that cannot be pinned: copy this once.
  if (n < 0 && (errno == ENOBUFS || errno == EFAULT || errno == ENOMEM))
    return ::send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n > 0) {
    awaited_.push_back(transfer);
    ++transfer->backend[kPending];
  }
  return n;
}

bool ZeroCopy::notification(int fd, std::uint32_t* first, std::uint32_t* last) {
  alignas(cmsghdr) char control[128];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (!(c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) &&
        !(c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR))
      continue;
    const auto* e = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(c));
    if (e->ee_origin != SO_EE_ORIGIN_ZEROCOPY || e->ee_errno != 0) continue;
    // The device could not take the pages: then it only adds work.
    if ((e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) && !always_) on_ = false;
    *first = e->ee_info;
    *last = e->ee_data;
    return true;
  }
  return false;
}

GCCL_Transfer* ZeroCopy::release(std::uint32_t id) {
  const std::uint32_t index = id - first_awaited_;
  if (index >= awaited_.size()) return nullptr;
  GCCL_Transfer* t = std::exchange(awaited_[index], nullptr);
  while (!awaited_.empty() && !awaited_.front()) {
    awaited_.pop_front();
    ++first_awaited_;
  }
  return t && --t->backend[kPending] == 0 ? t : nullptr;
}

}  // namespace gccl::tcp
