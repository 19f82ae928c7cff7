#include "cli/launch/output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gccl::launch {
namespace {

// The pipe or terminal opened once more, as not to wait is a property that other processes that have it open would
// share. Where that is not allowed (a terminal of another user): none.
Fd reopened(int fd) {
  struct stat s {};
  if (fstat(fd, &s) != 0 || (!S_ISFIFO(s.st_mode) && !S_ISCHR(s.st_mode))) return {};
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return {};  // a closed one's place (reserve_standard_streams)
  return Fd(open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

Output::Output(int fd) : own_(reopened(fd)), fd_(own_ ? own_.get() : fd) {}

void Output::put(std::string_view text) {
  if (error_) return;
  pending_ += text;
  flush();
}

void Output::flush() {
  while (waits()) {
    // A pipe that has room takes so many bytes without waiting, opened again or not.
    pollfd room{fd_, POLLOUT, 0};
    if (poll(&room, 1, 0) == 0) return;
    const ssize_t n = ::write(fd_, pending_.data() + done_, std::min<std::size_t>(pending_.size() - done_, PIPE_BUF));
    if (n >= 0) {
      done_ += std::size_t(n);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      error_ = errno;
      break;
    }
  }
  pending_.clear();
  done_ = 0;
}

bool TaggedStream::drain(int from) {
  char buffer[kReadBytes];
  const ssize_t n = ::read(from, buffer, sizeof buffer);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  pending_.append(buffer, std::size_t(n));
  put_lines(n == 0);
  return n > 0 && !to_->error();
}

void TaggedStream::put_lines(bool all) {
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::size_t newline = pending_.find('\n', at);
    const std::size_t end = newline == pending_.npos ? pending_.size() : newline;
    if (newline == pending_.npos && !all && end - at < kLineBytesMax) break;
    text += tag_ + pending_.substr(at, end - at) + "\n";
    at = newline == pending_.npos ? end : end + 1;
  }
  pending_.erase(0, at);
  to_->put(text);
}

}  // namespace gccl::launch
