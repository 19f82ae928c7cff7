// A link between two ranks of a job that is slower than the others: the system sends no faster over their connections
// (SO_MAX_PACING_RATE), and tells nobody.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "tests/support/rank_job.hpp"
#include "tests/support/resets.hpp"

namespace gccl::test {

// Collective over the ranks of a communicator that are connected already: what rank `from` sends to rank `to` over any
// of its connections to that process goes at so many bytes a second; 0: as fast as it can.
inline void set_link_rate(GCCL_Comm comm, int from, int to, std::uint64_t bytes_per_second) {
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
  int found = 0;
  if (ranks::rank_of(comm) == from)
    for (const int fd : mine)
      for (const Ends& theirs : all[std::size_t(to)])
        if (const Ends e = ends_of(fd); e.local == theirs.remote && e.remote == theirs.local) {
          const std::uint64_t rate = bytes_per_second > 0 ? bytes_per_second : ~std::uint64_t(0);
          RANK_CHECK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) == 0);
          ++found;
        }
  RANK_CHECK(ranks::rank_of(comm) != from || found > 0);
  RANK_SUCCESS(GCCL_Barrier(comm));
}

}  // namespace gccl::test
