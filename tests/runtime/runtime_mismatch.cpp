// Ranks whose calls differ: without a timeout and without GCCL_CHECK every rank must be notified, and soon. What the
// reports say: runtime_mismatch_reports.cpp. What is found when communicators end: runtime_mismatch_endings.cpp.
// runtime_circles.cpp has ranks that wait for each other, runtime_waits.cpp what must not be taken for a difference.
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

}  // namespace runtime_mismatch
