#include "libgccl/bootstrap/join_report.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "libgccl/bootstrap/secret.hpp"

namespace gccl {
namespace {

constexpr std::size_t kWordMax = 64;

Fd datagram_socket(int flags) {
  return not_for_children([flags] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0); });
}

// False where the name is no such socket's.
bool address_of(const std::string& name, sockaddr_un* address, socklen_t* bytes) {
  if (name.empty() || name.size() + 1 > sizeof address->sun_path) return false;
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());  // behind a zero: a name without a file
  *bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

}  // namespace

Status JoinReports::open() {
  name_ = "gccl-launch-" + random_secret().substr(0, 16);
  sockaddr_un address;
  socklen_t bytes = 0;
  [[maybe_unused]] const bool named = address_of(name_, &address, &bytes);
  assert(named);
  fd_ = datagram_socket(SOCK_NONBLOCK);
  if (!fd_ || ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    return system_error("a socket for what processes say of joining", errno);
  return {};
}

bool JoinReports::next(std::string* word, JoinState* state) const {
  char text[1 + kWordMax];
  for (;;) {
    const ssize_t n = ::recv(fd_.get(), text, sizeof text, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n < 2) continue;  // anybody may send
    *state = JoinState(text[0]);
    *word = std::string(text + 1, std::size_t(n) - 1);
    return true;
  }
}

Status report_join(const Environment& environment, JoinState state) {
  const std::string place = read_text(environment, kJoinReport);
  if (place.empty()) return {};
  const std::size_t colon = place.find(':');
  sockaddr_un address;
  socklen_t bytes = 0;
  const std::string word = colon == place.npos ? "" : place.substr(colon + 1);
  if (word.empty() || word.size() > kWordMax || !address_of(place.substr(0, colon), &address, &bytes))
    return invalid(fmt::format("{} is \"{}\", expected \"NAME:WORD\", as a launcher sets it", kJoinReport, place));
  const std::string what = fmt::format("the launcher at {}", kJoinReport);
  const Fd fd = datagram_socket(0);
  if (!fd) return system_error(what, errno);
  const timeval second{1, 0};  // a launcher that is stopped reads nothing
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  const std::string text = char(state) + word;
  for (;;) {
    if (::sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                 bytes) >= 0)
      return {};
    if (errno != EINTR) return system_error(what, errno);
  }
}

}  // namespace gccl
