#include "libgccl/transports/tcp/data/link.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <system_error>

namespace gccl::tcp {

bool Link::connect(std::uint32_t stream, std::uint32_t streams, Fd fd, const Settings& settings) {
  if (streams_.empty()) streams_.resize(streams);
  if (stream >= streams_.size() || streams_.size() != streams || streams_[stream]) return false;
  assert(fd);
  auto s = std::make_unique<Stream>();
  const bool always = settings.zero_copy == Settings::ZeroCopyUse::always;
  // Over loopback the kernel copies all the same, later and with more work.
  if (always || (settings.zero_copy == Settings::ZeroCopyUse::automatic && !stays_on_host(fd.get())))
    s->zero_copy.enable(fd.get(), always);
  s->fd = std::move(fd);
  streams_[stream] = std::move(s);
  registered_ = false;
  return true;
}

bool Link::advance_sends(Completions* done, std::string* problem) {
  if (outgoing_.empty() || !connected()) return true;
  int error = 0;
  if (outgoing_.advance(streams_, done, &error)) return true;
  *problem = std::generic_category().message(error);
  return false;
}

bool Link::advance_receives(Completions* done, Staging* staging, std::string* problem) {
  if (incoming_.empty() || !connected()) return true;
  // Each message begins on the first stream; only long ones go on over others.
  if (!incoming_.advance(streams_[0].get(), true, done, staging, problem)) return false;
  for (std::size_t i = 1; i < streams_.size() && !incoming_.empty(); ++i)
    if (streams_[i] && incoming_.front()->bytes > Outgoing::kStripeBytes &&
        !incoming_.advance(streams_[i].get(), false, done, staging, problem))
      return false;
  return true;
}

bool Link::cancel(GCCL_Transfer* t) { return outgoing_.cancel(streams_, t) || incoming_.cancel(t); }

bool Link::register_with(int epoll) {
  assert(epoll >= 0);
  if (registered_) return true;
  for (auto& s : streams_) {
    if (!s || s->registered) continue;
    epoll_event e{};
    e.events = EPOLLIN | EPOLLOUT | EPOLLET;
    e.data.ptr = this;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd.get(), &e) != 0) return false;
    s->registered = true;
  }
  return registered_ = true;
}

bool Link::vanished(const Settings& settings) const {
  return std::ranges::any_of(streams_, [&](const auto& s) { return s && tcp::vanished(s->fd.get(), settings); });
}

std::uint64_t Link::moved_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& s : streams_) sum += s ? s->moved_bytes : 0;
  return sum;
}

std::string Link::doing() const {
  const GCCL_Transfer* const t = incoming_.empty() ? outgoing_.front() : incoming_.front();
  return fmt::format("{} {} bytes", incoming_.empty() ? "sending" : "receiving", t ? t->bytes : 0);
}

Link::~Link() {
  for (auto& s : streams_) {
    if (!s) continue;
    // Unread bytes would make the kernel answer with a reset, and drop what it has not delivered yet. Only a peer whose
    // messages nobody received left any; it gets no more than this.
    std::byte nowhere[4096];
    for (int i = 0; i < 4096 && recv(s->fd.get(), nowhere, sizeof nowhere, MSG_DONTWAIT) > 0; ++i) {
    }
  }
}

}  // namespace gccl::tcp
