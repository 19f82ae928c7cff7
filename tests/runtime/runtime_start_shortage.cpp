// Memory runs short while ranks start: an error, nothing ends the process, nothing stays behind.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/own_entries.hpp"
#include "tests/support/rank_job.hpp"
#include "tests/support/short_memory.hpp"

using namespace ranks;

namespace {

// With every later one, too, as in the next two: what clears up after the error may not need memory.
void allocations_of_ranks_fail(bool lasting) {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 1, .backends = backends}, [&](int) {
      GCCL_Config config = GCCL_CONFIG_INIT;
      config.size = 3;
      const int ranks[] = {0, 1, 2};
      std::thread([] {}).join();  // with the first one a sanitizer may start one of its own
      const auto threads = gccl::test::own_at_rest("task");
      int failures = 0;
      bool met = true;
      for (int n = 0; met; ++n) {
        GCCL_Comm worlds[3];
        denied = {.left = n, .lasting = lasting};
        const GCCL_Result result = GCCL_Init_ranks(worlds, ranks, 3, &config);
        met = std::exchange(denied, {}).met;
        if (result != GCCL_SUCCESS) {
          RANK_CHECK(met);
          RANK_CHECK(result == GCCL_ERR_SYSTEM);
          RANK_CHECK(says("out of memory"));
          for (const GCCL_Comm w : worlds) RANK_CHECK(w == GCCL_COMM_NULL);
          ++failures;
        }
        GCCL_Finalize();
        RANK_CHECK(gccl::test::comes_to("task", threads));
      }
      RANK_CHECK(failures > 3);  // the threads' own
    });
}

TEST_CASE("one allocation that fails while several ranks of a process start is an error, and no thread stays behind") {
  allocations_of_ranks_fail(false);
}

TEST_CASE("memory that is short from one allocation on while several ranks of a process start is an error") {
  allocations_of_ranks_fail(true);
}

void allocations_of_a_start_fail(bool lasting) {
  for (const char* backends : {"shm", "shm,tcp"})
    check({.size = 1, .backends = backends}, [&](int) {
      bool met = true;
      for (int n = 0; met; ++n) {
        GCCL_Comm world = GCCL_COMM_NULL;
        denied = {.left = n, .lasting = lasting};
        const GCCL_Result result = GCCL_Init(&world, nullptr);
        met = std::exchange(denied, {}).met;
        if (result != GCCL_SUCCESS && (!met || result != GCCL_ERR_SYSTEM))
          report("allocation " + std::to_string(n) + ": result " + std::to_string(result) + ": " + GCCL_Last_error());
        RANK_CHECK((result == GCCL_SUCCESS) == (world != GCCL_COMM_NULL));
        RANK_SUCCESS(GCCL_Finalize());
      }
    });
}

TEST_CASE("a start that finds no room for one allocation, whichever it is, is an error and can be tried again") {
  allocations_of_a_start_fail(false);
}

TEST_CASE("a start that finds no room from one allocation on is an error and can be tried again") {
  allocations_of_a_start_fail(true);
}

// A loopback port that is this process's to listen on until it ends.
std::string free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof a;
  auto* const at = reinterpret_cast<sockaddr*>(&a);
  REQUIRE((::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 && ::bind(fd, at, bytes) == 0 &&
           ::getsockname(fd, at, &bytes) == 0));
  return std::to_string(ntohs(a.sin_port));
}

// Many starts are in flight at once, as most of the time of one is waiting for a rank that does not come.
TEST_CASE("ranks that meet while one of them finds no room from one allocation on end with an error, if any") {
  constexpr int kApart = 4, kStarts = 80;
  for (const bool tcp : {false, true})
    for (const int starved : {0, 1}) {
      std::vector<std::unique_ptr<Running>> starts;
      for (int i = 0; i < kStarts; ++i) {
        Job job{.size = 2, .backends = "shm,tcp", .environment = {{"GCCL_START_TIMEOUT_MS", "500"}}};
        if (tcp) job.environment["GCCL_STORE"] = "tcp://127.0.0.1:" + free_port();
        starts.push_back(std::make_unique<Running>(job, [=](int rank) {
          GCCL_Comm world = GCCL_COMM_NULL;
          if (rank == starved) denied = {.left = i * kApart, .lasting = true};
          const GCCL_Result result = GCCL_Init(&world, nullptr);
          const bool met = std::exchange(denied, {}).met;
          if (met && result != GCCL_SUCCESS && result != GCCL_ERR_TIMEOUT) expect(result, GCCL_ERR_SYSTEM, "GCCL_Init");
          RANK_CHECK((result == GCCL_SUCCESS) == (world != GCCL_COMM_NULL));
          GCCL_Finalize();
        }));
      }
      for (int i = 0; i < kStarts; ++i) {
        const std::vector<End> ends = starts[std::size_t(i)]->wait();
        CHECK_MESSAGE((ends[0].good() && ends[1].good()), std::string(tcp ? "tcp" : "file"), " store, allocation ",
                      i * kApart, " of rank ", starved, ": ", texts(ends));
      }
    }
}

}  // namespace
