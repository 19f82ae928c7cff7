// Limits of time: the longest, the one of GCCL_Finalize, of calls that wait for others, and what is said when one is
// reached.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

TEST_CASE("the longest limits are long") {
  check({.size = 2, .backends = "shm"}, [](int rank) {
    for (const std::int64_t limit : {INT64_MAX, INT64_MAX / 1000000, std::int64_t(100000000000000)}) {
      GCCL_Config config = GCCL_CONFIG_INIT;
      config.timeout_ms = limit;
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, &config));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 1) usleep(100000);
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, limit));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 1) usleep(100000);
      float in = 1, out = 0;
      RANK_SUCCESS(GCCL_Allreduce(&in, &out, 1, GCCL_FLOAT32, GCCL_SUM, world));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 1) usleep(100000);
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Iallreduce(&in, &out, 1, GCCL_FLOAT32, GCCL_SUM, world, &request));
      RANK_SUCCESS(GCCL_Wait_for(&request, limit));
      RANK_CHECK(request == GCCL_REQUEST_NULL);
      RANK_SUCCESS(GCCL_Finalize());
    }
  });
}

TEST_CASE("a time below 0 is up, and only GCCL_TIMEOUT_NONE is no limit") {
  check({.size = 2, .limit_s = 60}, [](int rank) {
    GCCL_Comm world = begin();
    int value = 7;
    if (rank == 0) {
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Irecv(&value, 1, GCCL_INT32, 1, world, &request));
      for (const std::int64_t time : {std::int64_t(0), std::int64_t(-2), std::int64_t(-5000), INT64_MIN})
        expect(GCCL_Wait_for(&request, time), GCCL_IN_PROGRESS, "wait for " + std::to_string(time) + " ms");
      RANK_SUCCESS(GCCL_Send(&value, 1, GCCL_INT32, 1, world));
      RANK_SUCCESS(GCCL_Wait_for(&request, GCCL_TIMEOUT_NONE));
      RANK_CHECK(value == 42);
    } else {  // sends only after rank 0 has waited in vain
      RANK_SUCCESS(GCCL_Recv(&value, 1, GCCL_INT32, 0, world));
      usleep(100000);
      value = 42;
      RANK_SUCCESS(GCCL_Send(&value, 1, GCCL_INT32, 0, world));
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("finalize waits as long as calls may take, not as long as a start") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 3, .backends = backends, .environment = {{"GCCL_START_TIMEOUT_MS", "20000"}}}, [](int rank) {
      GCCL_Comm world = begin();
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 300));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 1) usleep(3000000);
      const GCCL_Result result = GCCL_Finalize();
      if (rank != 1) {
        RANK_CHECK(result == GCCL_ERR_TIMEOUT);
        RANK_CHECK(std::string(GCCL_Last_error()).find("300 ms") != std::string::npos);
      }
    });
  check({.size = 2, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = GCCL_COMM_NULL;
    setenv("GCCL_START_TIMEOUT_MS", "1000", 1);
    GCCL_Result result = GCCL_Init(&world, nullptr);
    for (int i = 0; i < 20 && result != GCCL_SUCCESS; ++i) result = GCCL_Init(&world, nullptr);  // a busy machine
    RANK_SUCCESS(result);
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 1) usleep(2500000);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("the time that I-calls wait for those before them counts against no limit") {
  for (const Job& job : transports(2))
    check(job, [](int rank) {
      const GCCL_Comm world = begin(), c = copy_of(world);
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 3000));
      constexpr int kCalls = 4;  // each takes a second
      int got[kCalls] = {};
      GCCL_Request received[kCalls], passed[kCalls];
      for (int i = 0; i < kCalls && rank == 0; ++i) {
        RANK_SUCCESS(GCCL_Irecv(&got[i], 1, GCCL_INT32, 1, world, &received[i]));
        RANK_SUCCESS(GCCL_Ibarrier(world, &passed[i]));
      }
      for (int i = 0; i < kCalls; ++i)
        if (rank == 0) {
          RANK_SUCCESS(GCCL_Wait(&passed[i]));
          RANK_SUCCESS(GCCL_Wait(&received[i]));
          RANK_CHECK(got[i] == i);
        } else {
          usleep(1000000);
          RANK_SUCCESS(GCCL_Send(&i, 1, GCCL_INT32, 0, world));
          RANK_SUCCESS(GCCL_Barrier(world));
        }
      // One that does not come is missed, and the report counts both times.
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, GCCL_TIMEOUT_NONE));
      RANK_SUCCESS(GCCL_Comm_set_timeout(c, 1000));
      if (rank == 0) {
        RANK_SUCCESS(GCCL_Ibarrier(c, &passed[0]));
        RANK_SUCCESS(GCCL_Ibarrier(c, &passed[1]));
        RANK_SUCCESS(GCCL_Send(got, 1, GCCL_INT32, 1, world));  // both have begun
        RANK_SUCCESS(GCCL_Wait(&passed[0]));
        expect(GCCL_Wait(&passed[1]), GCCL_ERR_TIMEOUT, "the second barrier");
        expect_text("barrier #2: not complete after 1000 ms (and ", "the second barrier");
        expect_text(" ms behind earlier calls); waiting for rank 1", "the second barrier");
      } else {
        RANK_SUCCESS(GCCL_Recv(got, 1, GCCL_INT32, 0, world));
        usleep(300000);
        RANK_SUCCESS(GCCL_Barrier(c));
        sleep(4);
      }
      RANK_SUCCESS(GCCL_Barrier(world));
      GCCL_Finalize();
    });
}

TEST_CASE("a timeout says what each rank waits for") {
  for (const Job& job : transports(4))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      const GCCL_Comm c = copy_of(world), other = copy_of(world);
      RANK_SUCCESS(GCCL_Comm_set_timeout(c, rank == 0 ? 8000 : 20000));
      float x = 0;
      // Rank 0 waits for what nobody sends, rank 1 for rank 0, rank 2 for rank 0 on another communicator; rank 3
      // computes.
      GCCL_Result result = GCCL_SUCCESS;
      if (rank == 0) result = GCCL_Recv(&x, 1, GCCL_FLOAT32, 3, c);
      if (rank == 1) result = GCCL_Recv(&x, 1, GCCL_FLOAT32, 0, c);
      if (rank == 0) {
        expect(result, GCCL_ERR_TIMEOUT, "recv");
        expect_text("waiting for rank 3", "recv");
        expect_text("rank 1 is in a recv from rank 0", "recv");
        expect_text("rank 2 is in barrier #1 on another communicator", "recv");
        expect_text("nothing heard from rank 3", "recv");
      }
      if (rank == 1) {
        expect(result, GCCL_ERR_TIMEOUT, "recv");
        expect_text("waiting for rank 0", "recv");
        // What rank 0 does after it has given up may be heard before its reason for that.
        RANK_CHECK(says("rank 0 is in a recv from rank 3") || says("rank 0 is in barrier #1 on another communicator"));
        // Behind rank 0's words, which have come shortened, stand this rank's own.
        expect_text(" ...; rank 1 of 4, recv of 1 x f32 from rank 0: waiting for rank 0", "recv");
      }
      if (rank == 3) sleep(10);
      RANK_SUCCESS(GCCL_Barrier(other));
      GCCL_Finalize();
    });
}

// Of three ranks the second comes late, for which in a ring the third one waits, in a tree the first one.
TEST_CASE("a timeout names the algorithm and the step that a rank waits in, and the bytes") {
  struct Case {
    const char* algorithm;
    std::size_t count;
    int waits;
    const char* text;
  };
  for (const char* backends : {"shm", "tcp"})
    for (const Case& c : {Case{"ring", 300, 2, " message of 400 bytes (ring, step "},
                          {"binomial_tree", 300, 0, " message of 1200 bytes (binomial_tree, step "},
                          {"ring", 900000, 2, " message of 1200000 bytes (ring, step "}})
      check(
          {.size = 3,
           .backends = backends,
           .environment = {{"GCCL_ALGORITHM", "allreduce=" + std::string(c.algorithm)}}},
          [&c](int rank) {
            const GCCL_Comm world = begin();
            RANK_SUCCESS(GCCL_Comm_set_timeout(world, rank == 1 ? GCCL_TIMEOUT_NONE : 500));
            std::vector<float> x(c.count), y(c.count);
            if (rank == 1) sleep(2);
            RANK_CHECK(GCCL_Allreduce(x.data(), y.data(), c.count, GCCL_FLOAT32, GCCL_SUM, world) == GCCL_ERR_TIMEOUT);
            if (rank == c.waits) {
              expect_text("waiting for rank 1,", "allreduce");
              expect_text(c.text, "allreduce");
            }
            GCCL_Finalize();
          });
}

TEST_CASE("a timeout names the channel where a call has several, and none where it has one") {
  int over[2];
  REQUIRE(pipe(over) == 0);
  check({.size = 2, .backends = "tcp"}, [&](int rank) {
    const GCCL_Comm world = begin();
    std::vector<float> data(4 << 20);
    const std::pair<std::size_t, bool> calls[] = {{1000, false}, {data.size(), true}};
    for (const auto& [count, several] : calls) {
      const GCCL_Comm c = copy_of(world);
      RANK_SUCCESS(GCCL_Comm_set_timeout(c, 500));
      char byte = 0;
      if (rank == 0) {
        expect(GCCL_Broadcast(data.data(), count, GCCL_FLOAT32, 1, c), GCCL_ERR_TIMEOUT, "broadcast");
        expect_text("waiting for rank 1", "broadcast");
        expect_text(several ? ", channel 0, step " : "a message of 4000 bytes (", "broadcast");
        RANK_CHECK(says("channel") == several);
        RANK_CHECK(!says("lane"));
        RANK_CHECK(write(over[1], &byte, 1) == 1);
      } else {  // in no call of GCCL's: that would be known to be another one
        RANK_CHECK(read(over[0], &byte, 1) == 1);
      }
      RANK_SUCCESS(GCCL_Barrier(world));
    }
    GCCL_Finalize();
  });
  close(over[0]);
  close(over[1]);
}

}  // namespace
