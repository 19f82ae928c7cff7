// Breaks TCP connections of this process, as a device on their way would: both ends get a reset, what is on its way is
// lost.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace gccl::test {

// The descriptors of this process that are connected TCP sockets, those apart that are in `not_these`.
inline std::vector<int> tcp_connections(const std::vector<int>& not_these = {}) {
  std::vector<int> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", gone)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    int protocol = 0;
    socklen_t bytes = sizeof protocol;
    sockaddr_storage peer{};
    socklen_t peer_bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 && protocol == IPPROTO_TCP &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 &&
        std::find(not_these.begin(), not_these.end(), fd) == not_these.end())
      found.push_back(fd);
  }
  return found;
}

// connect(2): "may be dissolved by connecting to AF_UNSPEC". Linux sends a reset, and drops what was sent or received
// and not read. By the system call itself: the thread sanitizer takes connect() for the making of the descriptor, and
// each use since for a race.
inline bool reset_connection(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  return syscall(SYS_connect, fd, &none, sizeof none) == 0;
}

// Resets one of this process's connections after the other, at random moments, until it is destroyed or so many
// seconds have passed: first it hurts, then all must end well.
class Resets {
 public:
  Resets(std::uint64_t seed, std::chrono::microseconds mean, std::chrono::seconds limit = std::chrono::seconds(2))
      : thread_([this, seed, mean, limit] { run(seed, mean, std::chrono::steady_clock::now() + limit); }) {}
  ~Resets() { stop(); }
  // How many there were so far.
  unsigned count() const { return count_; }
  // How many there were.
  unsigned stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return count_;
  }

 private:
  void run(std::uint64_t seed, std::chrono::microseconds mean, std::chrono::steady_clock::time_point until) {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> pause(1 / double(mean.count()));
    while (!stop_ && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::int64_t(pause(random))));
      const auto all = tcp_connections();
      if (!all.empty()) count_ += reset_connection(all[random() % all.size()]);
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<unsigned> count_{0};
  std::thread thread_;
};

}  // namespace gccl::test
