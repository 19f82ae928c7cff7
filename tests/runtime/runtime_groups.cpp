// GCCL_Group_start to GCCL_Group_end: the calls in between are carried out together, and no failure of one is lost.
#include <doctest/doctest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/own_entries.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

TEST_CASE("the end of a group returns the first error of the calls in it, and carries out the others") {
  struct Wrong {
    const char* text;
    std::function<GCCL_Result(GCCL_Comm)> call;
  };
  static float in[64], out[64];
  static GCCL_Request request;
  const size_t none[2] = {0, 0}, uneven[2] = {1, 2};
  const std::vector<Wrong> wrong = {
      {"dest is 99", [](GCCL_Comm c) { return GCCL_Send(in, 1, GCCL_FLOAT32, 99, c); }},
      {"source is -1", [](GCCL_Comm c) { return GCCL_Recv(out, 1, GCCL_FLOAT32, -1, c); }},
      {"dest is 2", [](GCCL_Comm c) { return GCCL_Isend(in, 1, GCCL_FLOAT32, 2, c, &request); }},
      {"dtype 77", [](GCCL_Comm c) { return GCCL_Allreduce(in, out, 1, 77, GCCL_SUM, c); }},
      {"root is 2", [](GCCL_Comm c) { return GCCL_Broadcast(in, 1, GCCL_FLOAT32, 2, c); }},
      {"recvbuf is null", [](GCCL_Comm c) { return GCCL_Alltoall(in, nullptr, 1, GCCL_FLOAT32, c); }},
      {"counts is null", [](GCCL_Comm c) { return GCCL_Allgatherv(in, out, nullptr, nullptr, GCCL_FLOAT32, c); }},
      {"counts is null", [](GCCL_Comm c) { return GCCL_Reduce_scatterv(in, out, nullptr, GCCL_FLOAT32, GCCL_SUM, c); }},
      {"recvcounts is null",
       [&](GCCL_Comm c) { return GCCL_Alltoallv(in, none, nullptr, out, nullptr, nullptr, GCCL_FLOAT32, c); }},
      {"sends itself",
       [&](GCCL_Comm c) { return GCCL_Alltoallv(in, uneven, nullptr, out, none, nullptr, GCCL_FLOAT32, c); }},
      {"request is null", [](GCCL_Comm c) { return GCCL_Ibarrier(c, nullptr); }},
      {"GCCL_COMM_NULL", [](GCCL_Comm) { return GCCL_Barrier(GCCL_COMM_NULL); }},
  };
  check({.size = 2}, [&](int) {
    GCCL_Comm w = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&w, nullptr));
    for (const Wrong& first : wrong) {
      float one = 1, sum = 0;
      const auto round = [&](const Wrong* second) {
        sum = 0;
        RANK_SUCCESS(GCCL_Group_start());
        RANK_SUCCESS(GCCL_Group_start());
        RANK_CHECK(first.call(w) == GCCL_ERR_INVALID_ARGUMENT);
        RANK_SUCCESS(GCCL_Group_end());
        RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, w));
        if (second) RANK_CHECK(second->call(w) == GCCL_ERR_INVALID_ARGUMENT);
      };
      for (const Wrong* second : {static_cast<const Wrong*>(nullptr), &wrong.front(), &wrong.back()}) {
        round(second);
        expect(GCCL_Group_end(), GCCL_ERR_INVALID_ARGUMENT, std::string("a group with: ") + first.text);
        expect_text(first.text, "the end of the group");
        RANK_CHECK(sum == 2);
      }
      // The next group knows nothing of it, nor does one hear of what fails outside.
      RANK_CHECK(first.call(w) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_SUCCESS(GCCL_Group_start());
      RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, w));
      RANK_SUCCESS(GCCL_Group_end());
    }
    GCCL_Comm c = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Comm_split(w, 0, 0, &c));
    RANK_SUCCESS(GCCL_Group_start());
    RANK_CHECK(GCCL_Send(in, 1, GCCL_FLOAT32, 99, c) == GCCL_ERR_INVALID_ARGUMENT);
    RANK_SUCCESS(GCCL_Recv(out, 1, GCCL_FLOAT32, 0, c));
    expect(GCCL_Group_abort(3), GCCL_ERR_INVALID_ARGUMENT, "the abort of a group");
    expect_text("dest is 99", "the abort of a group");
    GCCL_Comm_free(&c);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// Ranks 0 and 1 are one process. Rank 1 has what all say of their calls, that these differ, and asks what they were;
// rank 0 still waits for rank 3, which stands still.
TEST_CASE("of two ranks of one process that free their communicators one may be a step ahead") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 3, .backends = backends, .environment = {{"GCCL_SIZE", "4"}, {"GCCL_ALGORITHM", "allgather=ring"}}},
          [](int process) {
            const std::vector<int> mine = process == 0 ? std::vector{0, 1} : std::vector{process + 1};
            std::vector<GCCL_Comm> worlds(mine.size());
            RANK_SUCCESS(GCCL_Init_ranks(worlds.data(), mine.data(), int(mine.size()), nullptr));
            if (any_reported()) return;
            for (std::size_t i = 0; i < mine.size(); ++i)
              RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, mine[i] == 3, worlds[i]));
            RANK_SUCCESS(GCCL_Group_start());
            for (const GCCL_Comm world : worlds) RANK_SUCCESS(GCCL_Barrier(world));
            RANK_SUCCESS(GCCL_Group_end());
            if (process == 0) ::usleep(100'000);
            if (process == 2) {
              ::signal(SIGALRM, [](int) { ::usleep(600'000); });
              const itimerval soon{{0, 0}, {0, 20'000}};
              RANK_CHECK(::setitimer(ITIMER_REAL, &soon, nullptr) == 0);
            }
            expect(GCCL_Finalize(), GCCL_ERR_MISMATCH, "finalize");
          });
}

TEST_CASE("calls that wait for other ranks right away are refused where one thread would have to make theirs, too") {
  check({.size = 1}, [](int) {
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.size = 2;
    const int ranks[2] = {0, 1};
    GCCL_Comm worlds[2], made = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init_ranks(worlds, ranks, 2, &config));
    std::uint64_t flags = 1;
    const std::pair<const char*, std::function<GCCL_Result()>> calls[] = {
        {"GCCL_Comm_split", [&] { return GCCL_Comm_split(worlds[0], 0, 0, &made); }},
        {"GCCL_Comm_create", [&] { return GCCL_Comm_create(worlds[0], ranks, 2, &made); }},
        {"GCCL_Comm_free", [&] { return GCCL_Comm_free(&worlds[0]); }},
        {"GCCL_Comm_agree", [&] { return GCCL_Comm_agree(worlds[0], &flags); }},
        {"GCCL_Comm_shrink", [&] { return GCCL_Comm_shrink(worlds[0], &made); }},
        {"GCCL_Comm_grow", [&] { return GCCL_Comm_grow(worlds[0], 1, 0, &made); }},
        {"GCCL_Comm_set_on_failure", [&] { return GCCL_Comm_set_on_failure(worlds[0], GCCL_SHRINK); }},
    };
    // Linux may list threads of GCCL_Init_ranks for a moment after they have ended.
    const auto threads = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                           std::filesystem::directory_iterator());
    };
    while (!gccl::test::kSanitizerThreads && threads() > 1) std::this_thread::yield();
    for (const auto& call : calls) {
      if (!gccl::test::kSanitizerThreads) {  // which may make the other rank's call, for all that is known
        expect(call.second(), GCCL_ERR_INVALID_USAGE, call.first);
        expect_text(std::string(call.first) + " was called in the only thread", call.first);
      }
      float x[2] = {1, 2}, sum[2] = {};
      RANK_SUCCESS(GCCL_Group_start());
      for (int i = 0; i < 2; ++i) RANK_SUCCESS(GCCL_Allreduce(&x[i], &sum[i], 1, GCCL_FLOAT32, GCCL_SUM, worlds[i]));
      expect(call.second(), GCCL_ERR_INVALID_USAGE, call.first);
      expect_text(std::string(call.first) + " was called in a group", call.first);
      GCCL_Group_end();
      RANK_CHECK(sum[0] == 3 && sum[1] == 3);
    }
    // Outside of one, with a thread for each rank, they are carried out.
    GCCL_Comm halves[2];
    std::thread other([&] { RANK_SUCCESS(GCCL_Comm_split(worlds[1], 0, 0, &halves[1])); });
    RANK_SUCCESS(GCCL_Comm_split(worlds[0], 0, 0, &halves[0]));
    other.join();
    RANK_SUCCESS(GCCL_Finalize());
  });
  // And in a group of a process that is one.
  check({.size = 2}, [](int) {
    GCCL_Comm world = begin(), made = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Group_start());
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &made));
    RANK_SUCCESS(GCCL_Comm_free(&made));
    RANK_SUCCESS(GCCL_Group_end());
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("a thread that ends inside a group gives its calls up: they are carried out, and leave no memory behind") {
  check({.size = 2}, [](int) {
    const GCCL_Comm world = begin();
    constexpr int kRounds = 1000;
    std::size_t heap = 0;
    for (int i = 0; i < kRounds; ++i) {
      if (i == kRounds / 5) heap = ::mallinfo2().uordblks;  // by then whatever is kept for good has been made
      float one = 1, sum = 0;
      std::atomic<bool> over = i % 2 == 0, begun = false;  // the thread ends before its call does, or after
      std::thread thread([&] {
        RANK_SUCCESS(GCCL_Group_start());
        RANK_SUCCESS(GCCL_Group_start());
        RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, world));
        begun = true;
        while (!over) std::this_thread::yield();
      });
      while (!begun) std::this_thread::yield();
      if (over) thread.join();
      RANK_SUCCESS(GCCL_Barrier(world));  // comes after it
      over = true;
      if (thread.joinable()) thread.join();
      RANK_CHECK(sum == 2);
    }
    const std::size_t grown = ::mallinfo2().uordblks - heap;
    if (grown < SIZE_MAX / 2 && grown > 65536) report("the heap grew by " + std::to_string(grown) + " bytes");
    RANK_SUCCESS(GCCL_Finalize());
  });
}

}  // namespace
