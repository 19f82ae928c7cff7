// Ranks whose calls differ: without a timeout and without GCCL_CHECK every rank must be notified, and soon. First the
// whole table, then what each report says. runtime_circles.cpp has ranks that wait for each other, runtime_waits.cpp
// what must not be taken for a difference.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"
#include "tests/support/wide.hpp"

using namespace ranks;

namespace runtime_mismatch {

// A hang is for ever; an idle machine needs some 0.15 s, or 0.7 s where two communicators are concerned. On a busy one
// the soonest of several is still within a second.
constexpr double kSoon = 30, kSoonest = 1;

// What the calls work on; rank 1 is the one that is odd.
struct Scene {
  GCCL_Comm c, other;
  int rank, size;
  std::size_t n;  // elements of each call
  float *in, *out;
  bool odd() const { return rank == 1; }
};

struct Scenario {
  const char* name;
  std::function<GCCL_Result(const Scene&)> call;
  bool waits = false;  // no messages meet: the ranks must compare what they wait in
  bool once = false;   // whatever the length
};

GCCL_Result then(GCCL_Result before, const std::function<GCCL_Result()>& next) { return before ? before : next(); }

GCCL_Result allreduce(const Scene& s, std::size_t n, GCCL_Dtype type = GCCL_FLOAT32, GCCL_Op op = GCCL_SUM) {
  return GCCL_Allreduce(s.in, s.out, n, type, op, s.c);
}

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = {
      // Another root.
      {"broadcast root", [](const Scene& s) { return GCCL_Broadcast(s.out, s.n, GCCL_FLOAT32, s.odd(), s.c); }},
      {"reduce root",
       [](const Scene& s) { return GCCL_Reduce(s.in, s.out, s.n, GCCL_FLOAT32, GCCL_SUM, s.odd(), s.c); }, true},
      {"gather root", [](const Scene& s) { return GCCL_Gather(s.in, s.out, s.n, GCCL_FLOAT32, s.odd(), s.c); }},
      {"scatter root", [](const Scene& s) { return GCCL_Scatter(s.in, s.out, s.n, GCCL_FLOAT32, s.odd(), s.c); }},
      {"root of nothing", [](const Scene& s) { return GCCL_Broadcast(s.out, 0, GCCL_FLOAT32, s.odd(), s.c); }},
      {"root of a request",
       [](const Scene& s) {
         GCCL_Request r = GCCL_REQUEST_NULL;
         return then(GCCL_Ireduce(s.in, s.out, s.n, GCCL_FLOAT32, GCCL_SUM, s.odd(), s.c, &r),
                     [&] { return GCCL_Wait(&r); });
       },
       true},
      {"root, with tests",
       [](const Scene& s) {
         GCCL_Request r = GCCL_REQUEST_NULL;
         GCCL_Result result = GCCL_Ireduce(s.in, s.out, s.n, GCCL_FLOAT32, GCCL_SUM, s.odd(), s.c, &r);
         for (int done = 0; !done && !result;) result = GCCL_Test(&r, &done);
         return result;
       },
       true},
      // Another count.
      {"count", [](const Scene& s) { return allreduce(s, s.n + s.odd()); }},
      {"count 0", [](const Scene& s) { return allreduce(s, s.odd() ? 0 : s.n); }},
      {"broadcast count", [](const Scene& s) { return GCCL_Broadcast(s.out, s.n + s.odd(), GCCL_FLOAT32, 0, s.c); }},
      {"root's count too small",
       [](const Scene& s) { return GCCL_Broadcast(s.out, s.rank == 0 ? 1 : s.n, GCCL_FLOAT32, 0, s.c); }},
      {"reduce count",
       [](const Scene& s) { return GCCL_Reduce(s.in, s.out, s.n + s.odd(), GCCL_FLOAT32, GCCL_SUM, 0, s.c); }},
      {"reduce_scatter count",
       [](const Scene& s) { return GCCL_Reduce_scatter(s.in, s.out, s.n + s.odd(), GCCL_FLOAT32, GCCL_SUM, s.c); }},
      {"alltoall count", [](const Scene& s) { return GCCL_Alltoall(s.in, s.out, s.n + s.odd(), GCCL_FLOAT32, s.c); }},
      {"allgatherv lengths",
       [](const Scene& s) {
         std::vector<std::size_t> counts(std::size_t(s.size), s.n);
         counts.back() -= s.odd();
         return GCCL_Allgatherv(s.in, s.out, counts.data(), nullptr, GCCL_FLOAT32, s.c);
       }},
      {"reduce_scatterv lengths",
       [](const Scene& s) {
         std::vector<std::size_t> counts(std::size_t(s.size), s.n);
         counts.back() -= s.odd();
         return GCCL_Reduce_scatterv(s.in, s.out, counts.data(), GCCL_FLOAT32, GCCL_SUM, s.c);
       }},
      {"alltoallv lengths",
       [](const Scene& s) {
         std::vector<std::size_t> sent(std::size_t(s.size), s.n), due(std::size_t(s.size), s.n);
         if (s.odd()) --sent[0];
         return GCCL_Alltoallv(s.in, sent.data(), nullptr, s.out, due.data(), nullptr, GCCL_FLOAT32, s.c);
       }},
      {"alltoallv, nothing against something",
       [](const Scene& s) {
         std::vector<std::size_t> sent(std::size_t(s.size), s.n), due(std::size_t(s.size), s.n);
         if (s.odd()) sent[0] = 0;
         return GCCL_Alltoallv(s.in, sent.data(), nullptr, s.out, due.data(), nullptr, GCCL_FLOAT32, s.c);
       }},
      // Another type or operation.
      {"type", [](const Scene& s) { return allreduce(s, s.n, s.odd() ? GCCL_INT32 : GCCL_FLOAT32); }},
      {"operation", [](const Scene& s) { return allreduce(s, s.n, GCCL_FLOAT32, s.odd() ? GCCL_MAX : GCCL_SUM); }},
      {"reduce operation",
       [](const Scene& s) {
         return GCCL_Reduce(s.in, s.out, s.n, GCCL_FLOAT32, s.odd() ? GCCL_MAX : GCCL_SUM, 0, s.c);
       }},
      // Another call.
      {"allreduce against barrier", [](const Scene& s) { return s.odd() ? GCCL_Barrier(s.c) : allreduce(s, s.n); }},
      {"broadcast against reduce",
       [](const Scene& s) {
         return s.odd() ? GCCL_Reduce(s.in, s.out, s.n, GCCL_FLOAT32, GCCL_SUM, 0, s.c)
                        : GCCL_Broadcast(s.out, s.n, GCCL_FLOAT32, 0, s.c);
       }},
      {"scatter against gather",
       [](const Scene& s) {
         return s.odd() ? GCCL_Gather(s.in, s.out, s.n, GCCL_FLOAT32, 0, s.c)
                        : GCCL_Scatter(s.in, s.out, s.n, GCCL_FLOAT32, 0, s.c);
       }},
      {"order",
       [](const Scene& s) {
         return s.odd() ? then(GCCL_Barrier(s.c), [&] { return allreduce(s, s.n); })
                        : then(allreduce(s, s.n), [&] { return GCCL_Barrier(s.c); });
       }},
      {"one call fewer", [](const Scene& s) { return s.odd() ? GCCL_SUCCESS : allreduce(s, s.n); }},
      {"one root call fewer",
       [](const Scene& s) { return s.odd() ? GCCL_SUCCESS : GCCL_Broadcast(s.out, s.n, GCCL_FLOAT32, 0, s.c); }},
      {"split against barrier",
       [](const Scene& s) {
         GCCL_Comm made = GCCL_COMM_NULL;
         return s.odd() ? GCCL_Comm_split(s.c, 0, 0, &made) : GCCL_Barrier(s.c);
       }},
      {"split against create",
       [](const Scene& s) {
         GCCL_Comm made = GCCL_COMM_NULL;
         const int ranks[] = {0, 1};
         return s.odd() ? GCCL_Comm_split(s.c, 0, 0, &made) : GCCL_Comm_create(s.c, ranks, 2, &made);
       }},
#ifndef __SANITIZE_THREAD__  // which starts threads of its own: these reports are for processes of one
      // Agreeing on who has failed, where nobody has.
      {"allreduce against agree",
       [](const Scene& s) {
         std::uint64_t flags = 1;
         return s.odd() ? GCCL_Comm_agree(s.c, &flags) : allreduce(s, s.n);
       },
       true, true},
      {"shrink against barrier",
       [](const Scene& s) {
         GCCL_Comm made = GCCL_COMM_NULL;
         return s.odd() ? GCCL_Barrier(s.c) : GCCL_Comm_shrink(s.c, &made);
       },
       true, true},
      // Messages that nobody comes to send.
      {"all receive first",
       [](const Scene& s) {
         const int right = (s.rank + 1) % s.size, left = (s.rank + s.size - 1) % s.size;
         return then(GCCL_Recv(s.out, s.n, GCCL_FLOAT32, left, s.c),
                     [&] { return GCCL_Send(s.in, s.n, GCCL_FLOAT32, right, s.c); });
       },
       true, true},
      {"the second message",
       [](const Scene& s) {
         if (s.rank > 1) return GCCL_SUCCESS;
         RANK_SUCCESS(GCCL_Group_start());
         RANK_SUCCESS(GCCL_Send(s.in, s.n, GCCL_FLOAT32, 1 - s.rank, s.c));
         RANK_SUCCESS(GCCL_Recv(s.out, s.n, GCCL_FLOAT32, 1 - s.rank, s.c));
         return then(GCCL_Group_end(), [&] { return GCCL_Recv(s.out, s.n, GCCL_FLOAT32, 1 - s.rank, s.c); });
       },
       false, true},
      {"agree against nothing",
       [](const Scene& s) {
         std::uint64_t flags = 1;
         return s.odd() ? GCCL_Comm_agree(s.c, &flags) : GCCL_SUCCESS;
       },
       false, true},
      {"allreduce in a group against agree",
       [](const Scene& s) {
         std::uint64_t flags = 1;
         if (s.odd()) return GCCL_Comm_agree(s.c, &flags);
         RANK_SUCCESS(GCCL_Group_start());
         RANK_SUCCESS(allreduce(s, s.n));
         return GCCL_Group_end();
       },
       true, true},
#endif
  };
  return all;
}

TEST_CASE("calls that differ are an error on every rank, at the latest where the communicator is freed") {
  std::size_t which = 0;
  for (const int size : {2, 4})
    for (const Job& job : transports(size)) {
      ++which;
      check(job, [size, which](int rank) {
        const GCCL_Comm world = begin();
        constexpr std::size_t kLarge = 1 << 20;
        std::vector<float> in(4 * kLarge + 4), out(4 * kLarge + 4);
        double soonest = kSoon;
        std::size_t number = 0;
        for (const std::size_t n : {std::size_t(4), kLarge})
          for (const Scenario& scenario : scenarios()) {
            if (scenario.once && n == kLarge) continue;
            // Of the long ones each third, on one set of transports or another; short ones that wait are few.
            if (!gccl::test::wide() && n == kLarge && !scenario.waits && (++number + which) % 3 != 0) continue;
            GCCL_Comm c = copy_of(world);
            RANK_SUCCESS(GCCL_Barrier(world));
            const std::string what = std::string(scenario.name) + " of " + std::to_string(n);
            const auto began = Clock::now();
            GCCL_Result result = scenario.call({c, world, rank, size, n, in.data(), out.data()});
            std::string text = GCCL_Last_error();
            const GCCL_Result freed = GCCL_Comm_free(&c);
            if (result == GCCL_SUCCESS) {
              result = freed;
              text = GCCL_Last_error();
            } else {
              RANK_CHECK(freed == GCCL_SUCCESS);  // it is reported once
            }
            RANK_CHECK(c == GCCL_COMM_NULL);
            expect(result, GCCL_ERR_MISMATCH, what);
            if (text.find("rank ") == std::string::npos || text.find(" call") == std::string::npos ||
                (text.find('#') == std::string::npos && text.find("recv from") == std::string::npos))
              report(what + ": \"" + text + "\" names no rank or no call");
            const double took = seconds_since(began);
            if (took > kSoon) report(what + " took " + std::to_string(took) + " s");
            if (scenario.waits) soonest = std::min(soonest, took);
          }
        if (soonest > kSoonest * (std::getenv("GCCL_TEST_SANITIZED") ? 4 : 1))
          report("the soonest of all that wait for each other took " + std::to_string(soonest) + " s");
        RANK_SUCCESS(GCCL_Finalize());
      });
    }
}

TEST_CASE("an alltoallv whose lengths one pair of ranks sees differently is an error on every rank") {
  for (const int size : {2, 3})
    for (const Job& job : transports(size))
      check(job, [size](int rank) {
        const GCCL_Comm world = begin();
        constexpr std::size_t kLarge = 1 << 18;
        std::vector<float> in(std::size_t(size) * kLarge), out(in.size());
        for (const std::size_t n : {std::size_t(1), kLarge})
          for (int from = 0; from < size; ++from)
            for (int to = 0; to < size; ++to)
              for (const bool sends_nothing : {true, false}) {
                if (from == to) continue;
                std::vector<std::size_t> sent(std::size_t(size), n), due(sent);
                if (sends_nothing && rank == from) sent[std::size_t(to)] = 0;
                if (!sends_nothing && rank == to) due[std::size_t(from)] = 0;
                GCCL_Comm c = copy_of(world);
                GCCL_Result result =
                    GCCL_Alltoallv(in.data(), sent.data(), nullptr, out.data(), due.data(), nullptr, GCCL_FLOAT32, c);
                const std::string text = result ? GCCL_Last_error() : "";
                const GCCL_Result freed = GCCL_Comm_free(&c);
                expect(result ? result : freed, GCCL_ERR_MISMATCH,
                       std::to_string(n) + (sends_nothing ? " not sent" : " not due") + " from " +
                           std::to_string(from) + " to " + std::to_string(to) + ": " + text);
              }
        RANK_SUCCESS(GCCL_Finalize());
      });
}

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
      RANK_SUCCESS(GCCL_Barrier(c));
      expect(GCCL_Comm_free(&c), GCCL_ERR_MISMATCH, "free");
      expect_text("Comm_free", "free");
      expect_text("rank 0 called broadcast #11 of 0 x f32, root 1", "free");
      expect_text("rank 2 called broadcast #11 of 0 x f32, root 3", "free");
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
        RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT32, 0, world));
        expect(rank == 1 ? GCCL_Comm_free(&world) : GCCL_Finalize(), differ ? GCCL_ERR_MISMATCH : GCCL_SUCCESS, "end");
        if (differ) expect_text("broadcast #1 of 0 x f32", "end");
        RANK_SUCCESS(GCCL_Finalize());
      });
}

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
          RANK_CHECK(seconds_since(began) < kSoon);
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

}  // namespace runtime_mismatch
