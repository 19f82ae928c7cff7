// Calls that differ between ranks and that no message shows: they are found where communicators are freed, and by
// GCCL_Finalize.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

TEST_CASE("Finalize reports an alltoallv whose lengths differ, on the world and on what was split from it") {
  for (const Job& job : transports(4))
    for (const bool split : {false, true})
      for (const bool sends_nothing : {true, false})
        check(job, [&](int rank) {
          const GCCL_Comm world = begin(), c = split ? copy_of(world) : world;
          float in[4] = {}, out[4] = {};
          std::size_t sent[] = {1, 1, 1, 1}, due[] = {1, 1, 1, 1};
          if (rank == 1) (sends_nothing ? sent : due)[3] = 0;
          const GCCL_Result result = GCCL_Alltoallv(in, sent, nullptr, out, due, nullptr, GCCL_FLOAT32, c);
          const GCCL_Result last = GCCL_Finalize();
          expect(result ? result : last, GCCL_ERR_MISMATCH, "alltoallv or Finalize");
        });
}

TEST_CASE("a difference in what moves nothing is named where the communicator is freed") {
  for (const Job& job : transports(4))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Comm c = copy_of(world);
      for (int i = 0; i < 20; ++i)
        RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, i == 10 && rank == 2 ? 3 : 1, c));
      // On a busy machine the barrier may take so long that the ranks compare their calls, and then it is said there.
      GCCL_Result met = GCCL_Barrier(c);
      if (!met) met = GCCL_Comm_free(&c);
      expect(met, GCCL_ERR_MISMATCH, "barrier or free");
      expect_text("broadcast #11 of 0 x f32, root 1", "barrier or free");
      expect_text("broadcast #11 of 0 x f32, root 3", "barrier or free");
      expect_text("rank 2", "barrier or free");
      if (says("Comm_free")) {
        expect_text("rank 0 called broadcast #11 of 0 x f32, root 1", "free");
        expect_text("rank 2 called broadcast #11 of 0 x f32, root 3", "free");
      }
      if (c) RANK_SUCCESS(GCCL_Comm_free(&c));
      // In Finalize likewise.
      RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, rank == 0 ? 1 : 0, world));
      expect(GCCL_Finalize(), GCCL_ERR_MISMATCH, "finalize");
      expect_text("of 0 x f32, root 1", "finalize");
    });
}

TEST_CASE("a difference on a communicator that is not freed is found by GCCL_Finalize") {
  for (int size = 2; size <= 4; ++size)
    for (const Job& job : transports(size)) {
      check(job, [](int rank) {
        const GCCL_Comm world = begin();
        const GCCL_Comm c = copy_of(world), same = copy_of(world);
        float x = 1;
        RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT32, 1, same));
        RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, rank == 1, c));
        expect(GCCL_Finalize(), GCCL_ERR_MISMATCH, "finalize");
      });
      // What one rank alone reported: the others have made the same calls.
      check(job, [](int rank) {
        const GCCL_Comm world = begin();
        const GCCL_Comm c = copy_of(world), half = copy_of(world);
        RANK_SUCCESS(GCCL_Barrier(c));
        RANK_SUCCESS(GCCL_Barrier(world));
        if (rank == 0) RANK_SUCCESS(GCCL_Abort(c, 7));
        if (rank == 0) RANK_CHECK(GCCL_Barrier(c) == GCCL_ERR_ABORTED);
        RANK_SUCCESS(GCCL_Barrier(half));
        expect(GCCL_Finalize(), rank == 0 ? GCCL_SUCCESS : GCCL_ERR_ABORTED, "finalize");
      });
    }
  // Where communicators were let go of one by one, what is left is no difference.
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Comm c = copy_of(world);
      RANK_SUCCESS(GCCL_Barrier(c));
      if (rank == 1) RANK_SUCCESS(GCCL_Comm_release(&c));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// Over TCP GCCL_Finalize may be over before the abort of that communicator comes.
TEST_CASE("GCCL_Finalize reports what other ranks reported of a communicator, and freed it since") {
  for (int round = 0; round < 8; ++round)
    check({.size = 3, .backends = "tcp"}, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Comm c = copy_of(world), made = GCCL_COMM_NULL;
      if (rank > 0) {
        expect(GCCL_Comm_shrink(c, &made), GCCL_ERR_MISMATCH, "shrink");
        RANK_SUCCESS(GCCL_Comm_free(&c));
      }
      expect(GCCL_Finalize(), rank == 0 ? GCCL_ERR_MISMATCH : GCCL_SUCCESS, "finalize");
    });
}

TEST_CASE("a rank may free the communicator of all ranks that others leave to GCCL_Finalize") {
  for (const bool differ : {false, true})
    for (const Job& job : transports(3))
      check(job, [differ](int rank) {
        GCCL_Comm world = begin();
        float x = 1;
        RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, differ ? rank % 2 : 0, world));
        // On a busy machine this may wait for so long that the ranks compare their calls, and then it is said here.
        const GCCL_Result met = GCCL_Broadcast(&x, 1, GCCL_FLOAT32, 0, world);
        if (met) expect_text("broadcast #1 of 0 x f32", "broadcast");
        const GCCL_Result ended = rank == 1 ? GCCL_Comm_free(&world) : GCCL_Finalize();
        if (differ && !met) expect_text("broadcast #1 of 0 x f32", "end");
        expect(met ? met : ended, differ ? GCCL_ERR_MISMATCH : GCCL_SUCCESS, "broadcast or end");
        RANK_SUCCESS(GCCL_Finalize());
      });
}

TEST_CASE("one rank is in Finalize, another in a collective") {
  for (const int size : {2, 4})
    for (const Job& job : transports(size))
      for (const bool of_world : {false, true})
        check(job, [of_world](int rank) {
          const GCCL_Comm world = begin();
          const GCCL_Comm c = of_world ? world : copy_of(world);
          const auto began = Clock::now();
          GCCL_Result result = GCCL_SUCCESS;
          float x = 1, y = 0;
          if (rank != 1) {
            result = GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, c);
            if (result) expect_text("Finalize", "allreduce");
          }
          const GCCL_Result finalized = GCCL_Finalize();
          expect(result ? result : finalized, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank));
          RANK_CHECK(seconds_since(began) < 30);
        });
}

TEST_CASE("a message that was never received is an error on every rank where the communicator is freed") {
  for (const bool of_world : {false, true})
    for (const Job& job : transports(3))
      check(job, [of_world](int rank) {
        const GCCL_Comm world = begin();
        GCCL_Comm c = of_world ? world : copy_of(world);
        std::int32_t x = rank;
        for (int i = 0; i < 3; ++i) {
          if (rank == 1) RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_INT32, 2, c));
          if (rank == 2 && i < 2) RANK_SUCCESS(GCCL_Recv(&x, 1, GCCL_INT32, 1, c));
        }
        const GCCL_Result freed = of_world ? GCCL_Finalize() : GCCL_Comm_free(&c);
        expect(freed, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank));
        expect_text("has not received", "freed");
        if (!of_world) RANK_SUCCESS(GCCL_Finalize());
      });
}
