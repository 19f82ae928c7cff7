// Ranks that wait for each other, each in a call that is right by itself: every rank must get an error, and soon. Only
// processes of one thread can know, and the thread sanitizer starts threads of its own. runtime_waits.cpp has waits
// that end.
#ifndef __SANITIZE_THREAD__
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace runtime_circles {

constexpr double kSoon = 30;  // a hang is for ever; an idle machine needs some 0.7 s

TEST_CASE("one rank agrees on who has failed, the others are elsewhere") {
  enum { finalize, finalize_copy, released, another, another_agrees, receive, receive_another };
  for (const int others : {finalize, finalize_copy, released, another, another_agrees, receive, receive_another})
    for (const Job& job : transports(3))
      check(job, [others](int rank) {
        const GCCL_Comm world = begin(), a = others == finalize ? world : copy_of(world), b = copy_of(world);
        const auto began = Clock::now();
        std::uint64_t flags = 1;
        float x = 1, y = 0;
        GCCL_Result result = GCCL_SUCCESS;
        if (rank == 1)
          result = GCCL_Comm_agree(a, &flags);
        else if (others == another)
          result = GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, b);
        else if (others == receive || others == receive_another)
          result = GCCL_Recv(&y, 1, GCCL_FLOAT32, 1, others == receive ? a : b);
        else if (others == another_agrees)
          result = GCCL_Comm_agree(b, &flags);
        else if (others == released)
          for (GCCL_Comm c : {a, b}) RANK_SUCCESS(GCCL_Comm_release(&c));
        // Where the others make another call, rank 1 hears of them again when they end.
        const bool late = rank == 1 && (others == another || others == receive_another);
        if (result && !late) {
          expect(result, GCCL_ERR_MISMATCH, "case " + std::to_string(others));
          // Rank 1 may have found out first, and be through with its call.
          if (rank == 1 || !(says("rank 1 calls Finalize") || says("it calls Finalize")))
            expect_text("no rank has failed", "call");
        }
        const GCCL_Result finalized = GCCL_Finalize();
        if (others != released || rank == 1) RANK_CHECK((result || finalized));
        RANK_CHECK(seconds_since(began) < kSoon);
      });
}

TEST_CASE("collectives on two communicators in crossed order") {
  for (const int size : {2, 4})
    for (const Job& job : transports(size))
      for (const auto& [n, threaded] : {std::pair(std::size_t(4), 0), {std::size_t(1) << 20, 0}, {std::size_t(4), 1}})
        check(job, [n = n, threaded = threaded](int rank) {
          GCCL_Config config = GCCL_CONFIG_INIT;
          config.progress_thread = threaded;
          GCCL_Comm world = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Init(&world, &config));
          const GCCL_Comm a = copy_of(world), b = copy_of(world);
          std::vector<float> x(n), y(n);
          const auto began = Clock::now();
          const GCCL_Result first = GCCL_Allreduce(x.data(), y.data(), n, GCCL_FLOAT32, GCCL_SUM, rank == 1 ? b : a);
          if (first) expect_text("crossed order", "allreduce");
          const GCCL_Result second = GCCL_Allreduce(x.data(), y.data(), n, GCCL_FLOAT32, GCCL_SUM, rank == 1 ? a : b);
          const GCCL_Result finalized = GCCL_Finalize();
          expect(first ? first : second ? second : finalized, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank));
          RANK_CHECK(seconds_since(began) < kSoon);
        });
}

// In a larger job rank 0 may wait for another rank of the collective first, whose message might be on its way.
TEST_CASE("a receive against a collective") {
  enum { barrier, allreduce, allgather, broadcast, reduce, count };
  for (const int size : {2, 3, 5})
    for (const Job& job : transports(size))
      for (int other = 0; other < count; ++other)
        check(job, [other, size](int rank) {
          const GCCL_Comm world = begin();
          float x = 0;
          std::vector<float> y(std::size_t(size) << 8);
          const auto began = Clock::now();
          GCCL_Result result = GCCL_SUCCESS;
          if (rank == 1)
            result = GCCL_Recv(&x, 1, GCCL_FLOAT32, 0, world);
          else if (other == barrier)
            result = GCCL_Barrier(world);
          else if (other == allreduce)
            result = GCCL_Allreduce(GCCL_IN_PLACE, y.data(), 256, GCCL_FLOAT32, GCCL_SUM, world);
          else if (other == allgather)
            result = GCCL_Allgather(GCCL_IN_PLACE, y.data(), 256, GCCL_FLOAT32, world);
          else if (other == broadcast)
            result = GCCL_Broadcast(y.data(), 256, GCCL_FLOAT32, 1, world);
          else
            result = GCCL_Reduce(y.data(), y.data() + 256, 256, GCCL_FLOAT32, GCCL_SUM, 0, world);
          const GCCL_Result finalized = GCCL_Finalize();
          expect(result ? result : finalized, GCCL_ERR_MISMATCH, "case " + std::to_string(other));
          RANK_CHECK(seconds_since(began) < kSoon);
        });
}

// The others are in what GCCL_CHECK gathers before the call.
TEST_CASE("a receive from a root that waits until its earlier broadcasts are read") {
  constexpr int kCaller = 3;
  for (const std::size_t bytes : {32, 1024, 20000})
    for (const int size : {4, 7})
      check({.size = size, .backends = "shm"}, [bytes](int rank) {
        const GCCL_Comm world = begin();
        std::vector<char> x(bytes);
        const auto began = Clock::now();
        GCCL_Result result = GCCL_SUCCESS;
        for (int i = 0; result == GCCL_SUCCESS && seconds_since(began) < kSoon; ++i)
          result = rank == kCaller && i == 100 ? GCCL_Recv(x.data(), 1, GCCL_UINT8, 0, world)
                                               : GCCL_Broadcast(x.data(), bytes, GCCL_UINT8, 0, world);
        expect(result, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank));
        if (rank == 0 || rank == kCaller) expect_text("wait for each other", "the circle");
        GCCL_Finalize();
        RANK_CHECK(seconds_since(began) < kSoon);
      });
}

TEST_CASE("a receive against a collective that is compared first") {
  for (const Job& some : transports(3))
    check({.size = 3, .backends = some.backends, .nodes = some.nodes, .environment = {{"GCCL_CHECK", "1"}}},
          [](int rank) {
            const GCCL_Comm world = begin();
            float x = 0;
            expect(rank == 0 ? GCCL_Recv(&x, 1, GCCL_FLOAT32, 1, world) : GCCL_Broadcast(&x, 1, GCCL_FLOAT32, 1, world),
                   GCCL_ERR_MISMATCH, "call");
            expect_text("they wait for each other", "call");
            GCCL_Finalize();
          });
}

TEST_CASE("receives in a circle") {
  for (const int size : {3, 4, 7})
    for (const Job& job : transports(size))
      check(job, [size](int rank) {
        const GCCL_Comm world = begin();
        float x = 0;
        const auto began = Clock::now();
        expect(GCCL_Recv(&x, 1, GCCL_FLOAT32, (rank + 1) % size, world), GCCL_ERR_MISMATCH, "recv");
        expect_text("wait for each other in a circle", "recv");
        RANK_CHECK(seconds_since(began) < kSoon);
        GCCL_Finalize();
      });
}

// No two of them wait for each other, and where there are pairs alone no rank hears of all.
TEST_CASE("calls on several communicators in a circle") {
  enum { collectives, receives, mixed };
  for (const int size : {3, 5})
    for (const Job& job : transports(size))
      for (const int kind : {collectives, receives, mixed})
        check(job, [size, kind](int rank) {
          const GCCL_Comm world = begin();
          // pairs[r]: of rank r and the next one. Ranks that are in neither make the call as well.
          std::vector<GCCL_Comm> pairs(static_cast<std::size_t>(size));
          for (int r = 0; r < size; ++r) {
            const bool in = rank == r || rank == (r + 1) % size;
            RANK_SUCCESS(GCCL_Comm_split(world, in ? 0 : GCCL_UNDEFINED, rank == r ? 0 : 1, &pairs[std::size_t(r)]));
          }
          const auto call = [&](int pair) {
            float x = 1, y = 0;
            const GCCL_Comm c = pairs[std::size_t(pair)];
            if (kind == receives || (kind == mixed && pair % 2)) {
              const bool first = rank_of(c) == 0;
              return first ? GCCL_Recv(&x, 1, GCCL_FLOAT32, 1, c) : GCCL_Send(&x, 1, GCCL_FLOAT32, 0, c);
            }
            return GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, c);
          };
          const auto began = Clock::now();
          GCCL_Result result = call(rank);
          if (!result) result = call((rank + size - 1) % size);
          const GCCL_Result finalized = GCCL_Finalize();
          expect(result ? result : finalized, GCCL_ERR_MISMATCH, "kind " + std::to_string(kind));
          RANK_CHECK(seconds_since(began) < kSoon);
        });
}

TEST_CASE("a receive from oneself, or a long send to oneself, that nothing else can end") {
  for (const bool sends : {false, true})
    for (const int size : {1, 3})
      for (const char* threaded : {"0", "1"})
        check({.size = size, .environment = {{"GCCL_PROGRESS_THREAD", threaded}}}, [=](int rank) {
          const GCCL_Comm world = begin();
          std::vector<float> x(3000);
          if (rank == 0) {
            expect(sends ? GCCL_Send(x.data(), x.size(), GCCL_FLOAT32, 0, world)
                         : GCCL_Recv(x.data(), x.size(), GCCL_FLOAT32, 0, world),
                   GCCL_ERR_MISMATCH, sends ? "send" : "recv");
            expect_text(sends ? "no such receive" : "no such send", sends ? "send" : "recv");
          } else {
            expect(GCCL_Barrier(world), GCCL_ERR_MISMATCH, "barrier");
          }
          GCCL_Finalize();
        });
}

TEST_CASE("groups of collectives on two communicators in crossed order") {
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      const GCCL_Comm world = begin(), a = copy_of(world), b = copy_of(world);
      float x = 1, y = 0;
      const auto began = Clock::now();
      GCCL_Result result = GCCL_SUCCESS;
      for (const GCCL_Comm c : {rank == 1 ? b : a, rank == 1 ? a : b}) {
        RANK_SUCCESS(GCCL_Group_start());
        GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, c);
        if (const GCCL_Result ended = GCCL_Group_end(); !result) result = ended;
      }
      const GCCL_Result finalized = GCCL_Finalize();
      expect(result ? result : finalized, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank));
      RANK_CHECK(seconds_since(began) < kSoon);
    });
}

}  // namespace runtime_circles
#endif
