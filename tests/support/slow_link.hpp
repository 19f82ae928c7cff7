// A link between two ranks of a job that is slower than the others: the system sends no faster over their connections
// (SO_MAX_PACING_RATE), and tells nobody.
#pragma once

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "tests/support/rank_job.hpp"
#include "tests/support/resets.hpp"

namespace gccl::test {

// Collective over the ranks of a communicator that are connected already: on rank `from`, its connections to rank `to`.
inline std::vector<int> connections_between(GCCL_Comm comm, int from, int to) {
  struct Ends {
    std::uint32_t local = 0, remote = 0;  // ports
  };
  constexpr std::size_t kMost = 128;
  using All = std::array<Ends, kMost>;
  const auto port = [](int fd, auto end) {  // over IPv4 and IPv6 in the same place
    sockaddr_in6 address{};
    socklen_t bytes = sizeof address;
    RANK_CHECK(end(fd, reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
    return std::uint32_t(address.sin6_port);
  };
  const auto ends_of = [&](int fd) { return Ends{port(fd, getsockname), port(fd, getpeername)}; };
  const std::vector<int> mine = tcp_connections();
  All ends{};
  for (std::size_t i = 0; i < mine.size() && i < kMost; ++i) ends[i] = ends_of(mine[i]);
  std::vector<All> all(std::size_t(ranks::size_of(comm)));
  RANK_SUCCESS(GCCL_Allgather(&ends, all.data(), sizeof ends, GCCL_UINT8, comm));
  std::vector<int> found;
  if (ranks::rank_of(comm) == from)
    for (const int fd : mine)
      for (const Ends& theirs : all[std::size_t(to)])
        if (const Ends e = ends_of(fd); e.local == theirs.remote && e.remote == theirs.local) found.push_back(fd);
  RANK_CHECK(ranks::rank_of(comm) != from || !found.empty());
  return found;
}

// Collective likewise: what rank `from` sends to rank `to` over any of them goes at so many bytes a second; 0: as fast
// as it can.
inline void set_link_rate(GCCL_Comm comm, int from, int to, std::uint64_t bytes_per_second) {
  const std::uint64_t rate = bytes_per_second > 0 ? bytes_per_second : ~std::uint64_t(0);
  for (const int fd : connections_between(comm, from, to))
    RANK_CHECK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) == 0);
  RANK_SUCCESS(GCCL_Barrier(comm));
}

// Collective likewise: on rank `from`, the bytes that it has sent to rank `to` so far, by the system's count; 0 on
// others.
inline std::uint64_t link_bytes(GCCL_Comm comm, int from, int to) {
  std::uint64_t sum = 0;
  for (const int fd : connections_between(comm, from, to)) {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    RANK_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 && bytes == sizeof info);
    sum += info.tcpi_bytes_sent;
  }
  return sum;
}

}  // namespace gccl::test
