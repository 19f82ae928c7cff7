// What is said of calls that differ between ranks: both calls, by whom, and of how much.
#include <doctest/doctest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

TEST_CASE("a root that differs is named with both calls on both ranks") {
  for (const Job& job : transports(2))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      std::vector<float> x(100), y(100);
      RANK_SUCCESS(GCCL_Barrier(world));
      expect(GCCL_Reduce(x.data(), y.data(), 100, GCCL_FLOAT32, GCCL_SUM, rank, world), GCCL_ERR_MISMATCH, "reduce");
      for (const char* text : {"reduce #2 of 100 x f32, sum, root 0", "reduce #2 of 100 x f32, sum, root 1"})
        expect_text(text, "reduce");
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// Ranks 0 and 1 wait for rank 2 and compare their calls meanwhile, of which the first that differs is long over.
TEST_CASE("the first call that differs is named where ranks wait in a later one") {
  for (const Job& job : transports(3))
    for (const int calls : {12, 13, 100, 300})
      check(job, [calls](int rank) {
        const GCCL_Comm world = begin();
        for (int i = 0; i < calls; ++i)
          RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, i == 2 && rank == 1 ? 2 : 0, world));
        if (rank == 2) ::usleep(1'500'000);
        // Rank 2 may find all that the barrier needs, and hears of it when it leaves.
        GCCL_Result result = GCCL_Barrier(world);
        RANK_CHECK(rank == 2 || result == GCCL_ERR_MISMATCH);
        if (!result) result = GCCL_Finalize();
        expect(result, GCCL_ERR_MISMATCH, "barrier or Finalize");
        if (calls > 200) {
          expect_text(" made other calls before its call #", "barrier or Finalize");
        } else {
          expect_text("broadcast #3 of 0 x f32, root 0", "barrier or Finalize");
          expect_text("broadcast #3 of 0 x f32, root 2", "barrier or Finalize");
        }
        GCCL_Finalize();
      });
}

// Rank 1 no longer keeps the first calls, and waits in another communicator's.
TEST_CASE("calls that differ are reported soon also where the other rank has gone on and says no more") {
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Comm c = copy_of(world);
      for (int i = 0; i < 200; ++i)
        RANK_SUCCESS(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, i == 2 && rank == 1 ? 1 : 0, c));
      if (rank == 2) ::sleep(6);
      const auto began = Clock::now();
      float x = 1, y = 0;
      const GCCL_Result result = GCCL_Reduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, 0, c);
      if (rank == 0) {
        expect(result, GCCL_ERR_MISMATCH, "reduce");
        expect_text("made other calls before its call #", "reduce");
        RANK_CHECK(seconds_since(began) < 5);
      }
      // Where rank 0 has reported it by then, this is that error.
      if (rank == 1) static_cast<void>(GCCL_Broadcast(nullptr, 0, GCCL_FLOAT32, 0, c));
      RANK_SUCCESS(GCCL_Barrier(world));
      GCCL_Comm_free(&c);
      GCCL_Finalize();
    });
}

TEST_CASE("ranks of a smaller communicator are named with their world ranks") {
  check({.size = 4, .backends = "shm"}, [](int rank) {
    const GCCL_Comm world = begin();
    GCCL_Comm c = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Comm_split(world, rank / 2, 0, &c));
    float x = 1, y = 0;
    if (rank >= 2) {
      expect(GCCL_Reduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, rank - 2, c), GCCL_ERR_MISMATCH, "reduce");
      expect_text(" of 2 (world rank ", "who");
      for (const char* text : {"(world rank 2)", "(world rank 3)"}) expect_text(text, "who");
    }
    RANK_SUCCESS(GCCL_Comm_free(&c));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("roots beyond 15 and sizes of user-defined types are distinguished") {
  check({.size = 18, .backends = "shm"}, [](int rank) {
    const GCCL_Comm world = begin();
    GCCL_Comm c = copy_of(world);
    float x = 1, y = 0;
    GCCL_Result result = GCCL_Reduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, rank == 17 ? 17 : 1, c);
    if (!result) result = GCCL_Comm_free(&c);
    expect(result, GCCL_ERR_MISMATCH, "reduce");
    RANK_CHECK(!says("modulo") || rank != 17);
    if (c) GCCL_Comm_free(&c);
    c = copy_of(world);
    GCCL_Dtype type;
    RANK_SUCCESS(GCCL_Type_create(rank == 1 ? 12 : 8, &type));
    double z[2] = {};
    result = GCCL_Broadcast(z, 0, type, 0, c);
    RANK_CHECK(result == GCCL_SUCCESS);
    expect(GCCL_Comm_free(&c), GCCL_ERR_MISMATCH, "broadcast");
    expect_text("user-defined type (8 bytes)", "broadcast");
    expect_text("user-defined type (12 bytes)", "broadcast");
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("both sizes of user-defined types that differ are named, wherever that is found") {
  for (const Job& job : transports(2))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Dtype type;
      GCCL_Op op;
      RANK_SUCCESS(GCCL_Type_create(rank == 1 ? 12 : 8, &type));
      RANK_SUCCESS(GCCL_Op_create([](const void*, void*, std::size_t, GCCL_Dtype, void*) {}, nullptr, &op));
      for (const std::size_t n : {std::size_t(4), std::size_t(100'000)}) {
        std::vector<char> in(24 * n), out(24 * n);
        const auto named = [&](const std::string& name, const std::string& words,
                               const std::function<GCCL_Result(GCCL_Comm)>& call) {
          GCCL_Comm c = copy_of(world);
          const std::string what = name + " of " + std::to_string(n);
          GCCL_Result result = call(c);
          std::string text = GCCL_Last_error();
          const GCCL_Result freed = GCCL_Comm_free(&c);
          if (result == GCCL_SUCCESS) {
            result = freed;
            text = GCCL_Last_error();
          }
          expect(result, GCCL_ERR_MISMATCH, what);
          for (const char* size : {"user-defined type (8 bytes)", "user-defined type (12 bytes)"}) {
            const std::string expected = std::to_string(n) + " x " + size + words;
            if (text.find(expected) == std::string::npos)
              report(what + ": \"" + text + "\" does not say \"" + expected + "\"");
          }
        };
        named("broadcast", ", root 0", [&](GCCL_Comm c) { return GCCL_Broadcast(out.data(), n, type, 0, c); });
        named("gather", ", root 1", [&](GCCL_Comm c) { return GCCL_Gather(in.data(), out.data(), n, type, 1, c); });
        named("allgather", "", [&](GCCL_Comm c) { return GCCL_Allgather(in.data(), out.data(), n, type, c); });
        named("allreduce", ", user-defined operation",
              [&](GCCL_Comm c) { return GCCL_Allreduce(in.data(), out.data(), n, type, op, c); });
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("a rank that has nothing to send in a call is not said to have made another one in its place") {
  check({.size = 3}, [](int rank) {
    GCCL_Comm world = begin();
    int x = 1, y = 0;
    const GCCL_Result r = GCCL_Allreduce(&x, &y, rank == 2 ? 0 : 1, GCCL_INT32, GCCL_SUM, world);
    if (rank < 2) {
      RANK_CHECK(r == GCCL_ERR_MISMATCH);
      const std::string text = GCCL_Last_error();
      const auto says = [&](const char* what) { return text.find(what) != text.npos; };
      // By its next message, or by what the watch has heard.
      if (!says("rank 2 went through its own #1 without") && !says("rank 2 calls allreduce #1 of 0 x i32"))
        report(text);
    }
    GCCL_Finalize();
  });
}
