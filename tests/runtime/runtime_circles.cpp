// Ranks that wait for each other, each in a call that is right by itself: every rank must get an error, and soon. Only
// processes of one thread can know, and the thread sanitizer starts threads of its own. runtime_waits.cpp has waits
// that end.
#ifndef __SANITIZE_THREAD__
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace runtime_circles {

constexpr double kSoon = 30;  // a hang is for ever; an idle machine needs some 0.7 s

TEST_CASE("one rank agrees on who has failed, the others are elsewhere") {
  enum { finalize, finalize_copy, released, another, another_agrees };
  for (const int others : {finalize, finalize_copy, released, another, another_agrees})
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
        else if (others == another_agrees)
          result = GCCL_Comm_agree(b, &flags);
        else if (others == released)
          for (GCCL_Comm c : {a, b}) RANK_SUCCESS(GCCL_Comm_release(&c));
        // Where the others make another call, rank 1 hears of them again when they end.
        const bool late = rank == 1 && others == another;
        if (result && !late) {
          expect(result, GCCL_ERR_MISMATCH, "case " + std::to_string(others));
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

// In a larger job rank 0 may wait for another rank of the barrier first, whose message might be on its way.
TEST_CASE("a receive against a barrier") {
  for (const Job& job : transports(2))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      float x = 0;
      expect(rank == 1 ? GCCL_Recv(&x, 1, GCCL_FLOAT32, 0, world) : GCCL_Barrier(world), GCCL_ERR_MISMATCH, "call");
      expect_text("they wait for each other", "call");
      GCCL_Finalize();
    });
}

TEST_CASE("a receive from oneself that nothing else can end") {
  for (const int size : {1, 3})
    check({.size = size}, [](int rank) {
      const GCCL_Comm world = begin();
      float x = 1;
      if (rank == 0) {
        expect(GCCL_Recv(&x, 1, GCCL_FLOAT32, 0, world), GCCL_ERR_MISMATCH, "recv");
        expect_text("no such send", "recv");
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
