// TCP connections between real ranks that are reset at random moments (GCCL_LINK_LOST_MS): nothing is lost or doubled,
// in any collective.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"
#include "tests/support/resets.hpp"

using namespace ranks;

TEST_CASE("collectives of all sizes are right while connections are reset, and the resets are counted") {
  for (const int size : {2, 3})
    for (const std::uint64_t seed : {1, 2}) {
      CAPTURE(seed);
      check({.size = size, .backends = "tcp", .environment = {{"GCCL_LINK_LOST_MS", "30000"}}}, [&](int rank) {
        GCCL_Comm world = begin();
        if (!world) return;
        Random random(seed);
        {
          // However fast the machine: until each rank has broken three connections, which all ranks agree on.
          gccl::test::Resets breaks(seed * 100 + std::uint64_t(rank), std::chrono::milliseconds(5),
                                    std::chrono::seconds(20));
          const auto given_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          int enough = 0;
          for (int call = 0; (call < 150 || !enough) && !any_reported(); ++call) {
            const CallCase c = random_case(random, size, call % 10 == 0 ? 4 << 20 : 60000);
            const std::string wrong = outcome(c, world, rank, size, call % 2 == 0);
            if (!wrong.empty()) report(describe(c, size) + ": " + wrong);
            if (call % 10 != 9) continue;
            enough = breaks.count() >= 3 || std::chrono::steady_clock::now() > given_up;
            RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &enough, 1, GCCL_INT32, GCCL_MIN, world));
          }
          RANK_CHECK(breaks.stop() >= 3);
        }
        GCCL_Metrics m{};
        m.struct_bytes = sizeof m;
        RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
        RANK_CHECK(m.reconnects > 0);
        RANK_SUCCESS(GCCL_Finalize());
      });
    }
}

TEST_CASE("resets that were counted stay counted when the communicator becomes smaller") {
  const std::vector<End> ends = run(
      {.size = 3, .backends = "tcp", .environment = {{"GCCL_LINK_LOST_MS", "30000"}, {"GCCL_ON_FAILURE", "shrink"}}},
      [&](int rank) {
        GCCL_Comm world = begin();
        if (!world) return;
        GCCL_Metrics m{};
        m.struct_bytes = sizeof m;
        {
          gccl::test::Resets breaks(100 + std::uint64_t(rank), std::chrono::milliseconds(5), std::chrono::seconds(20));
          const auto began = Clock::now();
          for (int enough = 0; !enough && !any_reported();) {
            RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
            enough = m.reconnects >= 3 || seconds_since(began) > 20;
            RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &enough, 1, GCCL_INT32, GCCL_MIN, world));
          }
        }
        RANK_SUCCESS(GCCL_Barrier(world));
        RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
        const std::uint64_t reconnects = m.reconnects, repeated = m.bytes_repeated;
        RANK_CHECK(reconnects >= 3);
        lose(world, 2);
        RANK_SUCCESS(GCCL_Barrier(world));
        RANK_CHECK(size_of(world) == 2);
        RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
        RANK_CHECK(m.reconnects >= reconnects);
        RANK_CHECK(m.bytes_repeated >= repeated);
        GCCL_Finalize();
      });
  check_others(ends, {2});
}

TEST_CASE("an all-reduce of 64 MiB goes on after a reset in its middle") {
  check({.size = 2, .backends = "tcp", .environment = {{"GCCL_LINK_LOST_MS", "30000"}}}, [](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    constexpr std::size_t kCount = 16 << 20;
    std::vector<float> x(kCount);
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < kCount; ++i) x[i] = float(i % 1000 + std::size_t(rank));
      GCCL_Request request;
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, x.data(), kCount, GCCL_FLOAT32, GCCL_SUM, world, &request));
      if (rank == round % 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        int done = 0;
        RANK_SUCCESS(GCCL_Test(&request, &done));
        for (const int fd : gccl::test::tcp_connections()) gccl::test::reset_connection(fd);
      }
      RANK_SUCCESS(GCCL_Wait(&request));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < kCount; ++i) wrong += x[i] != float(2 * (i % 1000) + 1);
      RANK_CHECK(wrong == 0);
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// Rank 0 is through with its message and waits for another one, elsewhere.
TEST_CASE(
    "a message that is lost is sent again by a rank that waits on another communicator, or has a progress thread") {
  for (const char* thread : {"0", "1"})
    check({.size = 2,
           .backends = "tcp",
           .environment = {{"GCCL_LINK_LOST_MS", "30000"}, {"GCCL_PROGRESS_THREAD", thread}},
           .limit_s = 60},
          [&](int rank) {
            GCCL_Comm one = begin(), two = one ? copy_of(one) : nullptr;
            if (!two) return;
            int x = rank, y = 0;
            RANK_SUCCESS(GCCL_Barrier(one));
            RANK_SUCCESS(GCCL_Barrier(two));
            for (int round = 1; round <= 5; ++round) {
              if (rank == 0) {
                x = round;
                RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_INT32, 1, one));
                if (*thread == '1') std::this_thread::sleep_for(std::chrono::milliseconds(300));
                RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_INT32, 1, two));
              } else {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it is here now, and is dropped
                for (const int fd : gccl::test::tcp_connections()) gccl::test::reset_connection(fd);
                RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_INT32, 0, one));
                RANK_SUCCESS(GCCL_Send(&y, 1, GCCL_INT32, 0, two));
              }
              RANK_CHECK(y == round);
            }
            RANK_SUCCESS(GCCL_Comm_free(&two));
            RANK_SUCCESS(GCCL_Finalize());
          });
}

TEST_CASE("ranks that keep their links for different times do not start") {
  check({.size = 2, .backends = "tcp"}, [](int rank) {
    setenv("GCCL_LINK_LOST_MS", rank == 0 ? "0" : "500", 1);
    GCCL_Comm world = nullptr;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_USAGE, "GCCL_Init");
    expect_text("GCCL_LINK_LOST_MS differs: rank 0 has \"0\", rank 1 has \"500\"", "GCCL_Init");
  });
}

TEST_CASE("ranks of which some check what travels do not start, however the variable is written") {
  for (const char* none : {"0", "00", ""})
    check({.size = 2, .backends = "tcp"}, [&](int rank) {
      setenv("GCCL_LINK_CHECK", rank == 0 ? none : "01", 1);
      GCCL_Comm world = nullptr;
      expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_USAGE, "GCCL_Init");
      expect_text("GCCL_LINK_CHECK differs: rank 0 has \"0\", rank 1 has \"1\"", "GCCL_Init");
    });
}
