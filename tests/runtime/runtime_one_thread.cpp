// One thread that is several ranks, and waits in a call of one of them before it has made the others'. Only a process
// of one thread can know, and the thread sanitizer starts threads of its own.
#ifndef __SANITIZE_THREAD__
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace runtime_one_thread {

constexpr double kSoon = 30;  // a hang is for ever; an idle machine needs some 0.1 s

// The world of each of these ranks.
std::vector<GCCL_Comm> several(const std::vector<int>& ranks, int size) {
  std::vector<GCCL_Comm> worlds(ranks.size());
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.size = size;
  RANK_SUCCESS(GCCL_Init_ranks(worlds.data(), ranks.data(), int(ranks.size()), &config));
  return worlds;
}

enum Call { allreduce, long_allreduce, barrier, i_form, group, broadcast, reduce, receive, kCalls };

GCCL_Result call(int which, GCCL_Comm c, int root) {
  static float x[100000], y[100000];
  GCCL_Request request = GCCL_REQUEST_NULL;
  switch (which) {
    case allreduce: return GCCL_Allreduce(x, y, 1, GCCL_FLOAT32, GCCL_SUM, c);
    case long_allreduce: return GCCL_Allreduce(x, y, 100000, GCCL_FLOAT32, GCCL_SUM, c);
    case barrier: return GCCL_Barrier(c);
    case i_form:
      RANK_SUCCESS(GCCL_Iallreduce(x, y, 1, GCCL_FLOAT32, GCCL_SUM, c, &request));
      return GCCL_Wait(&request);
    case group:
      RANK_SUCCESS(GCCL_Group_start());
      RANK_SUCCESS(GCCL_Barrier(c));
      return GCCL_Group_end();
    case broadcast: return GCCL_Broadcast(x, 100, GCCL_FLOAT32, root, c);
    case reduce: return GCCL_Reduce(x, y, 100, GCCL_FLOAT32, GCCL_SUM, rank_of(c), c);
    default: return GCCL_Recv(x, 1, GCCL_FLOAT32, root, c);
  }
}

TEST_CASE("a thread that waits for one of its ranks, with the others' calls still to come, gets an error") {
  for (const char* backends : {"shm", "tcp"})
    for (const char* threaded : {"0", "1"})
      for (int which = 0; which < kCalls; ++which)
        check({.size = 1, .backends = backends, .environment = {{"GCCL_PROGRESS_THREAD", threaded}}}, [which](int) {
          const auto worlds = several({0, 1}, 2);
          const auto began = Clock::now();
          // A broadcast waits for its root alone.
          expect(call(which, worlds[1], 0), GCCL_ERR_INVALID_USAGE, "call " + std::to_string(which));
          expect_text("rank 1 of 2", "who");
          expect_text("rank 0 has not begun", "whom");
          expect_text("GCCL_Group_start", "what to do");
          RANK_CHECK(call(which, worlds[0], 1) != GCCL_IN_PROGRESS);  // it ends
          GCCL_Finalize();
          RANK_CHECK(seconds_since(began) < kSoon);
        });
}

TEST_CASE("so do the ranks of other processes, which wait for them") {
  for (const char* backends : {"shm", "tcp"})
    for (const int which : {int(allreduce), int(long_allreduce), int(barrier), int(i_form)}) {
      int heard[2];
      REQUIRE(::pipe(heard) == 0);
      check({.size = 2, .backends = backends}, [which, &heard](int process) {
        const auto worlds = several(process == 0 ? std::vector{0, 2} : std::vector{1}, 3);
        const auto began = Clock::now();
        expect(call(which, worlds[0], 0), GCCL_ERR_INVALID_USAGE, "process " + std::to_string(process));
        expect_text("rank 2 has not begun", "whom");
        char byte = 0;  // rank 2's GCCL_Finalize would be another reason
        RANK_CHECK((process == 0 ? ::read(heard[0], &byte, 1) : ::write(heard[1], &byte, 1)) == 1);
        GCCL_Finalize();
        RANK_CHECK(seconds_since(began) < kSoon);
      });
      for (const int fd : heard) ::close(fd);
    }
}

TEST_CASE("calls of one thread for its ranks in turns that need no other rank complete") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 1, .backends = backends}, [](int) {
      const auto worlds = several({0, 1}, 2);
      int x = 7, y = 0;
      for (int i = 0; i < 3; ++i) {
        if (i == 2) usleep(500000);
        RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_INT32, 0, worlds[0]));
        RANK_SUCCESS(GCCL_Broadcast(&y, 1, GCCL_INT32, 0, worlds[1]));
        RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_INT32, 0, worlds[1]));
        RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_INT32, 1, worlds[0]));
      }
      GCCL_Request requests[2];
      for (int r = 0; r < 2; ++r) RANK_SUCCESS(GCCL_Ibarrier(worlds[std::size_t(r)], &requests[r]));
      for (GCCL_Request& r : requests) RANK_SUCCESS(GCCL_Wait(&r));
      RANK_CHECK(y == 7);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// GCCL's own thread is inside a function of GCCL_Op_create when the process joins.
TEST_CASE("a rank of one thread that joins its own job is refused at once, whatever GCCL's own thread is doing") {
  check({.size = 1, .environment = {{"GCCL_PROGRESS_THREAD", "1"}, {"GCCL_JOIN_TIMEOUT_MS", "300"}}}, [](int) {
    const auto worlds = several({0, 1}, 2);
    static std::atomic<bool> inside{false};
    GCCL_Op op{};
    const auto take_long = [](const void*, void*, size_t, GCCL_Dtype, void*) {
      if (::gettid() != ::getpid() && !inside.exchange(true)) ::usleep(200000);
    };
    RANK_SUCCESS(GCCL_Op_create(take_long, nullptr, &op));
    float x[2] = {1, 1};
    GCCL_Request requests[2];
    for (int r = 0; r < 2; ++r)
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, &x[r], 1, GCCL_FLOAT32, op, worlds[std::size_t(r)], &requests[r]));
    const auto began = Clock::now();
    while (!inside && seconds_since(began) < 60) ::usleep(1000);
    RANK_CHECK(inside);
    GCCL_Comm none = GCCL_COMM_NULL;
    expect(GCCL_Join(&none, nullptr), GCCL_ERR_INVALID_USAGE, "join");
    expect_text("already", "join");
    RANK_SUCCESS(GCCL_Waitall(2, requests));
    RANK_SUCCESS(GCCL_Op_free(&op));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// With another thread nobody knows whether that will make the missing call: here it does.
TEST_CASE(
    "where another thread may make the missing call, the wait goes on, and is spoken of unless that made others") {
  std::vector<std::unique_ptr<Running>> jobs;
  for (const char* backends : {"shm", "tcp"})
    for (const bool makes_others : {false, true})
      jobs.push_back(std::make_unique<Running>(Job{.size = 1, .backends = backends}, [makes_others](int) {
        const auto worlds = several({0, 1}, 2);
        std::thread other([&] {
          if (makes_others) RANK_SUCCESS(call(barrier, worlds[1], 0));
          usleep(11000000);
          RANK_SUCCESS(call(barrier, worlds[1], 0));
        });
        if (makes_others) RANK_SUCCESS(call(barrier, worlds[0], 0));
        RANK_SUCCESS(call(barrier, worlds[0], 0));
        other.join();
        RANK_SUCCESS(GCCL_Finalize());
      }));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const End end = jobs[i]->wait().front();
    CHECK_MESSAGE(end.good(), end.text);
    const bool spoken =
        end.text.find("rank 0 of 2, barrier #1: has waited 10 s: rank 1 has not begun it") != end.text.npos;
    CHECK_MESSAGE(spoken == (i % 2 == 0), end.text);
    CHECK_MESSAGE((end.text.find("has waited") != end.text.npos) == spoken, end.text);
  }
}

}  // namespace runtime_one_thread
#endif
