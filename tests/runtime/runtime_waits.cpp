// Ranks that wait for each other and are right to: late ones, calls on two communicators in either order, calls that
// another thread is about to make. None of these may be taken for calls that differ (runtime_mismatch.cpp) or for a
// circle (runtime_circles.cpp).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/backoff.hpp"
#include "libgccl/base/splitmix.hpp"
#include "tests/support/from_environment.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

// A message of 512 MiB takes longer than a wait stays awake, and came half as fast where its reader slept.
TEST_CASE("a wait in which something is complete or bytes come stays awake, one in which nothing comes sleeps") {
  const auto sleeps = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  for (const gccl::Progress made : {gccl::Progress::something, gccl::Progress::bytes, gccl::Progress::nothing})
    for (const bool oversubscribed : {false, true}) {
      gccl::Backoff backoff(oversubscribed);
      const long before = sleeps();
      const auto began = Clock::now();
      while (seconds_since(began) < 0.1 ||
             (made == gccl::Progress::nothing && sleeps() == before && seconds_since(began) < 20))
        backoff.after(made);
      CHECK((sleeps() > before) == (made == gccl::Progress::nothing));
    }
}

// All make the same calls in one order, on communicators of two and of all ranks, so the first of the calls
// that are not over can end. Ranks sleep so long that those that wait look for a circle.
TEST_CASE("ranks that come late to calls on many communicators are in no circle") {
  for (std::uint64_t seed = 1; seed <= gccl::test::from_environment("GCCL_TEST_WAITS_SEEDS", 1); ++seed)
    for (const Job& job : transports(5))
      check(job, [seed](int rank) {
        const GCCL_Comm world = begin();
        constexpr int kSize = 5;
        std::vector<GCCL_Comm> pairs(kSize);
        for (int r = 0; r < kSize; ++r) {
          const bool in = rank == r || rank == (r + 1) % kSize;
          RANK_SUCCESS(GCCL_Comm_split(world, in ? 0 : GCCL_UNDEFINED, 0, &pairs[std::size_t(r)]));
        }
        gccl::splitmix::Generator all{seed}, mine{seed * 100 + std::uint64_t(rank)};
        for (int i = 0; i < 24; ++i) {
          const auto a = int(all.below(kSize)), b = int((a + 1 + all.below(kSize - 1)) % kSize);
          const auto kind = all.below(4);
          float x = 1, y = 0;
          if (mine.below(6) == 0) usleep(useconds_t(400000 + mine.below(600000)));
          if (kind == 0) {
            if (rank == a) RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT32, b, world));
            if (rank == b) RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_FLOAT32, a, world));
          } else if (kind == 1) {
            RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT32, a, world));
          } else if (kind == 2) {
            RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, world));
          } else if (const GCCL_Comm pair = pairs[std::size_t(a)]) {
            RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, pair));
          }
        }
        RANK_SUCCESS(GCCL_Finalize());
      });
}

// Each wait ends in time, and with it the other one: nobody waits for ever.
TEST_CASE("ranks that wait for each other go on where a time limit ends a wait before") {
  enum { receive, barrier, agreement, agreement_there, crossed, barrier_and_agreement };
  for (const int kind : {receive, barrier, agreement, agreement_there, crossed, barrier_and_agreement})
    for (const Job& job : transports(2))
      check(job, [kind](int rank) {
        const GCCL_Comm world = begin();
        const GCCL_Comm side = kind == agreement_there ? world : copy_of(world);
        RANK_SUCCESS(GCCL_Comm_set_timeout(side, 1500));
        const bool agrees = kind == agreement || kind == agreement_there || kind == barrier_and_agreement;
        const bool receives = kind == receive || kind == agreement || kind == agreement_there;
        float x = 1, y = 0;
        std::uint64_t flags = 1;
        if (rank == 0) {
          expect(receives ? GCCL_Recv(&y, 1, GCCL_FLOAT32, 1, side) : GCCL_Barrier(side), GCCL_ERR_TIMEOUT, "");
          RANK_SUCCESS(agrees            ? GCCL_Comm_agree(world, &flags)
                       : kind == crossed ? GCCL_Barrier(world)
                                         : GCCL_Send(&x, 1, GCCL_FLOAT32, 1, world));
        } else {
          if (kind == agreement_there) RANK_SUCCESS(GCCL_Comm_set_timeout(side, 10000));
          RANK_SUCCESS(agrees            ? GCCL_Comm_agree(world, &flags)
                       : kind == crossed ? GCCL_Barrier(world)
                                         : GCCL_Recv(&y, 1, GCCL_FLOAT32, 0, world));
        }
        GCCL_Finalize();
      });
}

TEST_CASE("ranks that are late, busy elsewhere or differ where they may are waited for") {
  for (int size = 3; size <= 4; ++size)
    for (const Job& job : transports(size))
      check(job, [size](int rank) {
        const GCCL_Comm world = begin();
        const GCCL_Comm c = copy_of(world);
        GCCL_Comm pair = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, rank < 2 ? 0 : GCCL_UNDEFINED, 0, &pair));
        float x = 1, y = 0;
        // The first computes for a second; the second waits for it, on another communicator; the others for both.
        if (rank == 0) usleep(1000000);
        if (pair) RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, pair));
        RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, c));
        RANK_CHECK(y == float(size));
        // Crossed, but by requests: every rank comes to both.
        GCCL_Request requests[2];
        float sums[2] = {};
        if (rank == 0) usleep(700000);
        for (int i = 0; i < 2; ++i)
          RANK_SUCCESS(GCCL_Iallreduce(&x, &sums[i], 1, GCCL_FLOAT32, GCCL_SUM, (rank == 1) == (i == 0) ? c : world,
                                       &requests[i]));
        RANK_SUCCESS(GCCL_Waitall(2, requests));
        RANK_CHECK((sums[0] == float(size) && sums[1] == float(size)));
        // Crossed, but one of the two is polled while the other is called.
        int done = 0;
        if (rank == 1) {
          RANK_SUCCESS(GCCL_Iallreduce(&x, &sums[0], 1, GCCL_FLOAT32, GCCL_SUM, c, &requests[0]));
          for (const auto began = Clock::now(); seconds_since(began) < 1.5 && !done; usleep(100))
            RANK_SUCCESS(GCCL_Test(&requests[0], &done));
          RANK_SUCCESS(GCCL_Allreduce(&x, &sums[1], 1, GCCL_FLOAT32, GCCL_SUM, world));
          RANK_SUCCESS(GCCL_Wait(&requests[0]));
        } else {
          RANK_SUCCESS(GCCL_Allreduce(&x, &sums[1], 1, GCCL_FLOAT32, GCCL_SUM, world));
          RANK_SUCCESS(GCCL_Allreduce(&x, &sums[0], 1, GCCL_FLOAT32, GCCL_SUM, c));
        }
        // Types and operations have numbers of their own on each rank; buffers may be in place on some.
        GCCL_Op extra, op;
        const auto add = [](const void* in, void* inout, size_t n, GCCL_Dtype, void*) {
          for (size_t i = 0; i < n; ++i) static_cast<long*>(inout)[i] += static_cast<const long*>(in)[i];
        };
        if (rank == 0) RANK_SUCCESS(GCCL_Op_create(add, nullptr, &extra));
        RANK_SUCCESS(GCCL_Op_create(add, nullptr, &op));
        GCCL_Dtype type;
        RANK_SUCCESS(GCCL_Type_create(sizeof(long), &type));
        long v = rank + 1, sum = 0;
        if (rank == 1) sum = v;
        RANK_SUCCESS(GCCL_Allreduce(rank == 1 ? GCCL_IN_PLACE : &v, &sum, 1, type, op, c));
        RANK_CHECK(sum == size * (size + 1) / 2);
        // The last to come to Finalize is late as well.
        if (rank == size - 1) usleep(700000);
        RANK_SUCCESS(GCCL_Finalize());
      });
}

// A rank waits in a call that another has not made, and that one waits for the first on another communicator: a circle
// only where neither wait can end.
TEST_CASE("waits on two communicators that end by themselves are no crossed order") {
  constexpr int kLateUs = 1000000;
  for (Job job : transports(3)) {
    job.environment["GCCL_ALGORITHM"] = "allreduce=direct,broadcast=chain";
    if (!job.nodes.empty()) job.nodes = {0, 0, 1};  // so the chain takes the ranks in order
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      const GCCL_Comm c = copy_of(world);
      GCCL_Comm pair = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, rank > 0 ? 0 : GCCL_UNDEFINED, 0, &pair));
      float x = float(rank), y = 0;
      // Rank 1 waits for a root that is late, rank 2 for rank 1.
      if (rank == 0) usleep(kLateUs);
      if (rank == 2) RANK_SUCCESS(GCCL_Barrier(pair));
      RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT32, 0, c));
      if (rank == 1) RANK_SUCCESS(GCCL_Barrier(pair));
      RANK_CHECK(x == 0);
      // Rank 2 waits for rank 1, which is in that call by a request and waits for a late one there.
      x = rank == 0 ? 5 : 0;
      GCCL_Request request = GCCL_REQUEST_NULL;
      if (rank == 0) usleep(kLateUs);
      if (rank == 1) {
        RANK_SUCCESS(GCCL_Ibroadcast(&x, 1, GCCL_FLOAT32, 0, c, &request));
      } else {
        RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT32, 0, c));
      }
      if (rank > 0) RANK_SUCCESS(GCCL_Barrier(pair));
      RANK_SUCCESS(GCCL_Wait(&request));
      RANK_CHECK(x == 5);
      // Rank 2 waits for a late message, and has begun a call for which it does not wait yet.
      x = 1;
      if (rank != 1) RANK_SUCCESS(GCCL_Iallreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, c, &request));
      if (rank == 0) {
        usleep(kLateUs);
        RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT32, 2, c));
      }
      float z = 0;
      if (rank == 2) RANK_SUCCESS(GCCL_Recv(&z, 1, GCCL_FLOAT32, 0, c));
      if (rank > 0) RANK_SUCCESS(GCCL_Barrier(pair));
      if (rank == 1) RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT32, GCCL_SUM, c));
      RANK_SUCCESS(GCCL_Wait(&request));
      RANK_CHECK(y == 3);
      RANK_SUCCESS(GCCL_Finalize());
    });
  }
}

// An older request of rank 0's is first in flight while it waits, in a group, for something else: it is not what its
// thread waits for, so nobody waits in a circle.
TEST_CASE("a group that waits while an older request is in flight is waited for") {
  for (const bool collective : {false, true})
    for (const Job& job : transports(3))
      check(job, [collective](int rank) {
        const GCCL_Comm world = begin();
        float late = float(rank), x = 1, y = 0;
        GCCL_Request request = GCCL_REQUEST_NULL;
        if (rank == 0) {
          RANK_SUCCESS(collective ? GCCL_Ibroadcast(&late, 1, GCCL_FLOAT32, 1, world, &request)
                                  : GCCL_Irecv(&late, 1, GCCL_FLOAT32, 1, world, &request));
          RANK_SUCCESS(GCCL_Group_start());
          RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_FLOAT32, 2, world));
          RANK_SUCCESS(GCCL_Group_end());
          RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT32, 1, world));
          RANK_SUCCESS(GCCL_Wait(&request));
        } else {
          if (rank == 1) RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_FLOAT32, 0, world));
          if (rank == 2) {
            usleep(1500000);
            RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT32, 0, world));
          }
          if (collective)
            RANK_SUCCESS(GCCL_Broadcast(&late, 1, GCCL_FLOAT32, 1, world));
          else if (rank == 1)
            RANK_SUCCESS(GCCL_Send(&late, 1, GCCL_FLOAT32, 0, world));
        }
        RANK_CHECK(rank == 2 || (y == 1 && late == 1));
        RANK_SUCCESS(GCCL_Finalize());
      });
}

// Rank 0 is stopped while the others complete the call in which it is, and go on.
TEST_CASE("a rank that is late in freeing a communicator is waited for in Finalize") {
  for (const Job& job : transports(3)) {
    Running running(job, [](int rank) {
      GCCL_Comm world = begin(), c = copy_of(world);
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 0) {
        std::printf("frees\n");
        std::fflush(stdout);
      } else {
        usleep(1000000);
      }
      RANK_SUCCESS(GCCL_Comm_free(&c));
      RANK_SUCCESS(GCCL_Finalize());
    });
    CHECK(running.await(0, "frees\n"));
    usleep(500000);
    running.kill(0, SIGSTOP);
    usleep(1500000);
    running.kill(0, SIGCONT);
    const std::vector<End> ends = running.wait();
    for (const End& end : ends) CHECK_MESSAGE(end.good(), describe(job) << "\n" << texts(ends));
  }
}

// The call that is missing comes from another thread, which made its calls so far the short way, or which left the
// waiting to another one, or from a function of GCCL_On_complete.
TEST_CASE("calls that another thread or a function is about to make are no crossed order") {
  constexpr int kLateUs = 1000000;
  static float x = 1, y[3];
  const auto begin_on = [](int i, GCCL_Comm c, GCCL_Request* r) {
    RANK_SUCCESS(GCCL_Iallreduce(&x, &y[i], 1, GCCL_FLOAT32, GCCL_SUM, c, r));
  };
  for (const Job& job : transports(3)) {
    // One thread for each communicator; rank 1 is late on one of them, the others on the other one.
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      const GCCL_Comm a = copy_of(world), b = copy_of(world);
      const auto sum = [](int i, GCCL_Comm c) {
        RANK_SUCCESS(GCCL_Allreduce(&x, &y[i], 1, GCCL_FLOAT32, GCCL_SUM, c));
        RANK_CHECK(y[i] == 3);
      };
      for (int i = 0; i < 3; ++i) sum(0, a), sum(1, b);
      std::thread other([&] {
        sum(1, b);
        if (rank != 1) usleep(kLateUs);
        sum(1, b);
      });
      if (rank == 1) usleep(kLateUs);
      sum(0, a);
      other.join();
      RANK_SUCCESS(GCCL_Finalize());
    });
    // A thread that nobody knows of yet: its first call comes late. Rank 1 makes the calls in the other order.
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      const GCCL_Comm a = copy_of(world), b = copy_of(world);
      if (rank == 1) {
        RANK_SUCCESS(GCCL_Barrier(b));
        RANK_SUCCESS(GCCL_Barrier(a));
      } else {
        std::thread other([&] {
          usleep(kLateUs);
          RANK_SUCCESS(GCCL_Barrier(b));
        });
        RANK_SUCCESS(GCCL_Barrier(a));
        other.join();
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
    // One thread begins all calls, another one waits for the first.
    check(job, [&](int rank) {
      const GCCL_Comm world = begin();
      const GCCL_Comm first = copy_of(world), second = copy_of(world);
      GCCL_Request requests[2];
      begin_on(0, rank == 1 ? second : first, &requests[0]);
      std::thread waits([&] { RANK_SUCCESS(GCCL_Wait(&requests[0])); });
      usleep(kLateUs);
      begin_on(1, rank == 1 ? first : second, &requests[1]);
      RANK_SUCCESS(GCCL_Wait(&requests[1]));
      waits.join();
      RANK_CHECK((y[0] == 3 && y[1] == 3));
      RANK_SUCCESS(GCCL_Finalize());
    });
    // Rank 0's second call is begun when rank 2 has come, which is late.
    check(job, [&](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Comm a = GCCL_COMM_NULL, late = GCCL_COMM_NULL;
      static GCCL_Comm b;
      for (GCCL_Comm* c : {&a, &b}) RANK_SUCCESS(GCCL_Comm_split(world, rank < 2 ? 0 : GCCL_UNDEFINED, 0, c));
      RANK_SUCCESS(GCCL_Comm_split(world, rank != 1 ? 0 : GCCL_UNDEFINED, 0, &late));
      GCCL_Request request = GCCL_REQUEST_NULL;
      static GCCL_Request of_function = GCCL_REQUEST_NULL;
      if (rank == 2) usleep(kLateUs);
      if (late) begin_on(0, late, &request);
      if (rank == 0) {
        const auto next = [](GCCL_Result, void*) {
          RANK_SUCCESS(GCCL_Iallreduce(&x, &y[1], 1, GCCL_FLOAT32, GCCL_SUM, b, &of_function));
        };
        RANK_SUCCESS(GCCL_On_complete(request, next, nullptr));
        RANK_SUCCESS(GCCL_Allreduce(&x, &y[2], 1, GCCL_FLOAT32, GCCL_SUM, a));
      }
      if (rank == 1) {
        RANK_SUCCESS(GCCL_Allreduce(&x, &y[1], 1, GCCL_FLOAT32, GCCL_SUM, b));
        RANK_SUCCESS(GCCL_Allreduce(&x, &y[2], 1, GCCL_FLOAT32, GCCL_SUM, a));
      }
      RANK_SUCCESS(GCCL_Wait(&request));
      RANK_SUCCESS(GCCL_Wait(&of_function));
      if (rank < 2) RANK_CHECK((y[1] == 2 && y[2] == 2));
      RANK_SUCCESS(GCCL_Finalize());
    });
  }
}
