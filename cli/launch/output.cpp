#include "cli/launch/output.hpp"

#include <unistd.h>

#include <cerrno>

#include "cli/output.hpp"

namespace gccl::launch {
bool TaggedStream::drain(int from) {
  char buffer[kReadBytes];
  const ssize_t n = ::read(from, buffer, sizeof buffer);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  pending_.append(buffer, std::size_t(n));
  put_lines(n == 0);
  return n > 0 && !error_;
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
  error_ = write_all(to_, text);
}

}  // namespace gccl::launch
