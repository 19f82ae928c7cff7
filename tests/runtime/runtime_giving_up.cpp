// One rank gives up while ranks agree or make a communicator smaller: the calls of all end with that.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Rank 3 has ended. Rank 0 gives up a call in which rank 1 is, too, and to which rank 2 comes once both have returned.
// None of their processes ends before: that would help the others.
void rank_0_gives_up(Job job, GCCL_Result due, const std::string& why,
                     const std::function<GCCL_Result(int rank, GCCL_Comm)>& call) {
  int go[2], gone[2];
  REQUIRE(::pipe(go) == 0);
  REQUIRE(::pipe(gone) == 0);
  job.size = 4;
  job.limit_s = 60;
  Running running(job, [&](int rank) {
    GCCL_Comm world = begin();
    (void)GCCL_Barrier(world);
    if (rank == 3) ::_exit(0);
    char byte = 0;
    if (rank == 2) RANK_CHECK(::read(go[0], &byte, 1) == 1);
    for (int i = 0; i < 2; ++i) {
      expect(call(rank, world), due, i == 0 ? "the call" : "the next one");
      expect_text(why, "who");
    }
    std::printf("returned\n");
    std::fflush(stdout);
    RANK_CHECK(::read(gone[0], &byte, 1) == 1);
    without_leak_check();
    GCCL_Finalize();
  });
  for (const int r : {0, 1}) CHECK_MESSAGE(running.await(r, "returned\n"), describe(job) << ", rank " << r);
  CHECK(::write(go[1], "1", 1) == 1);
  CHECK_MESSAGE(running.await(2, "returned\n"), describe(job));
  CHECK(::write(gone[1], "111", 3) == 3);
  const std::vector<End> ends = running.wait();
  for (const int fd : {go[0], go[1], gone[0], gone[1]}) ::close(fd);
  for (const End& e : ends) CHECK_MESSAGE(e.good(), describe(job) << "\n" << texts(ends));
}

// The program's, of rank 0: what ends its call is done once it has noticed the failure, so that it is recovering.
void on_noticing(int rank, GCCL_Comm world, GCCL_Failure_function function) {
  if (rank == 0) RANK_SUCCESS(GCCL_On_failure(world, function, nullptr));
}

std::atomic<bool> noticed{false};

}  // namespace

TEST_CASE("GCCL_Abort on one rank ends the recovery of all") {
  for (const char* backends : {"shm", "tcp"})
    rank_0_gives_up({.backends = backends, .environment = {{"GCCL_ON_FAILURE", "shrink"}}}, GCCL_ERR_ABORTED,
                    "GCCL_Abort was called on rank 0 with code 5", [](int rank, GCCL_Comm world) {
                      on_noticing(rank, world, [](GCCL_Comm, const GCCL_Failure*, void*) { noticed = true; });
                      std::thread aborts([&] {
                        while (rank == 0 && !noticed) ::usleep(1000);
                        if (rank == 0) ::usleep(50000);
                        if (rank == 0) RANK_SUCCESS(GCCL_Abort(world, 5));
                      });
                      const GCCL_Result result = GCCL_Barrier(world);
                      aborts.join();
                      return result;
                    });
}

TEST_CASE("GCCL_Abort ends an agreement that waits for the rank that called it, and none that begins later") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 3, .backends = backends}, [](int rank) {
      const GCCL_Comm world = begin();
      const GCCL_Comm c = copy_of(world);
      std::uint64_t flags = 1;
      if (rank == 1) {
        ::usleep(200000);
        RANK_SUCCESS(GCCL_Abort(c, 5));
        ::usleep(1000000);  // the others do not wait for that
      } else {
        const auto began = Clock::now();
        expect(GCCL_Comm_agree(c, &flags), GCCL_ERR_ABORTED, "agree");
        expect_text("GCCL_Abort was called on rank 1 with code 5", "agree");
        RANK_CHECK(seconds_since(began) < 0.9);
      }
      RANK_SUCCESS(GCCL_Barrier(world));
      const GCCL_Comm d = copy_of(world);
      RANK_SUCCESS(GCCL_Abort(d, 6));
      RANK_SUCCESS(GCCL_Comm_agree(d, &flags));
      GCCL_Finalize();
    });
}

TEST_CASE("a time limit that ends on one rank ends the call of all") {
  const char* const why = "rank 0: agreement took too long";
  rank_0_gives_up(
      {.environment = {{"GCCL_ON_FAILURE", "shrink"}}}, GCCL_ERR_TIMEOUT, why, [](int rank, GCCL_Comm world) {
        on_noticing(rank, world,
                    [](GCCL_Comm comm, const GCCL_Failure*, void*) { RANK_SUCCESS(GCCL_Comm_set_timeout(comm, 100)); });
        return GCCL_Barrier(world);
      });
  for (const bool shrinks : {true, false})
    rank_0_gives_up({}, GCCL_ERR_TIMEOUT, why, [shrinks](int rank, GCCL_Comm world) {
      if (rank == 0) RANK_SUCCESS(GCCL_Comm_set_timeout(world, 100));
      GCCL_Comm smaller = GCCL_COMM_NULL;
      std::uint64_t flags = 1;
      return shrinks ? GCCL_Comm_shrink(world, &smaller) : GCCL_Comm_agree(world, &flags);
    });
}

TEST_CASE("an agreement that took too long ends the communicator on all ranks, as any call does") {
  for (const char* backends : {"shm", "tcp"})
    for (const bool shrinks : {true, false}) {
      check({.size = 2, .backends = backends}, [shrinks](int rank) {
        GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Barrier(world));
        double x = 1, sum = 0;
        std::uint64_t flags = 1;
        if (rank == 0) {
          RANK_SUCCESS(GCCL_Comm_set_timeout(world, 300));
          expect(shrinks ? GCCL_Comm_shrink(world, &smaller) : GCCL_Comm_agree(world, &flags), GCCL_ERR_TIMEOUT,
                 "late");
        }
        RANK_SUCCESS(GCCL_Comm_set_timeout(world, GCCL_TIMEOUT_NONE));
        expect(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world), GCCL_ERR_TIMEOUT, "a collective after it");
        if (rank == 0) expect(GCCL_Comm_agree(world, &flags), GCCL_ERR_TIMEOUT, "an agreement after it");
        GCCL_Finalize();
      });
    }
}
