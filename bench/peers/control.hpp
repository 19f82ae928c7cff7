// The line between a measuring process and bench/compare: one Unix socket per rank, lines of text both ways. A rank
// waits in read() between points, so that all peers can be up at once and still leave the cores to the one measured.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace gccl::bench {

class Control {
 public:
  explicit Control(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error("--control: path too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("--control " + path + ": " + std::strerror(errno));
  }
  ~Control() { close(socket_); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Waits for a line. False when the other side is gone.
  bool read_line(std::string* line) {
    for (;;) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        line->assign(buffer_, 0, end);
        buffer_.erase(0, end + 1);
        return true;
      }
      char chunk[4096];
      const ssize_t n = read(socket_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      buffer_.append(chunk, std::size_t(n));
    }
  }

  bool write_line(std::string line) {
    line += '\n';
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t n = send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += std::size_t(n);
    }
    return true;
  }

 private:
  int socket_ = -1;
  std::string buffer_;
};

}  // namespace gccl::bench
