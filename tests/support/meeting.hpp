// Ranks that meet over a store, as threads of the test, and say what became of it: below the C interface, whose ranks
// are processes (rank_job.hpp).
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libgccl/bootstrap/bootstrap.hpp"
#include "libgccl/net/socket.hpp"
#include "tests/support/child.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/has.hpp"

namespace gccl::test {

using Bytes = std::vector<std::byte>;

// A loopback port that is this process's to listen on until it ends: bound, not listening, and so given to nobody else.
inline std::uint16_t free_port() {
  static std::vector<Fd> reserved;
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const SocketAddress any = SocketAddress::loopback(0);
  REQUIRE(setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
  REQUIRE(bind(fd.get(), any.data(), any.bytes()) == 0);
  reserved.push_back(std::move(fd));
  return SocketAddress::local_end(reserved.back().get()).port();
}

// What rank r contributes to a round.
inline Bytes contribution(Rank r, unsigned round, std::size_t bytes) {
  Bytes b(bytes);
  for (std::size_t i = 0; i < bytes; ++i) b[i] = std::byte((r * 131 + round * 17 + i * 7) & 255);
  return b;
}

// Several rounds of one rank; the first thing that goes wrong.
inline Status meet(Exchange& exchange, Rank rank, Rank size, unsigned rounds = 3, std::int64_t timeout_ms = 20000) {
  for (unsigned round = 0; round < rounds; ++round) {
    const std::size_t bytes = round == 1 ? 0 : 1 + 300 * round;
    Bytes all, expected;
    if (Status s = exchange.all_gather(contribution(rank, round, bytes), &all, timeout_ms); !s.ok()) return s;
    for (Rank r = 0; r < size; ++r) {
      const Bytes theirs = contribution(r, round, bytes);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    if (all != expected) return Status::error("round " + std::to_string(round) + ": wrong bytes");
  }
  return {};
}

// Opens a store with open(rank, &exchange) and meets the others there.
template <class Open>
Status open_and_meet(Open open, Rank rank, Rank size, unsigned rounds = 3, std::int64_t timeout_ms = 20000) {
  std::unique_ptr<Exchange> exchange;
  Status s = open(rank, &exchange);
  return s.ok() && exchange ? meet(*exchange, rank, size, rounds, timeout_ms) : s;
}

// Each rank in a thread of its own: what became of it.
template <class Open>
std::vector<Status> in_threads(Rank size, Open open, unsigned rounds = 3, std::int64_t timeout_ms = 20000) {
  std::vector<Status> results(size);
  std::vector<std::thread> threads;
  for (Rank r = 0; r < size; ++r)
    threads.emplace_back([&, r] { results[r] = open_and_meet(open, r, size, rounds, timeout_ms); });
  for (std::thread& t : threads) t.join();
  return results;
}

inline void check_all_ok(const std::vector<Status>& results) {
  for (std::size_t r = 0; r < results.size(); ++r) CHECK_MESSAGE(results[r].ok(), r << ": " << results[r].text());
}

}  // namespace gccl::test
