// Communicators that shrink by themselves when ranks are killed: what calls return, and how the policy is set. What the
// program's function hears and may do: runtime_on_failure.cpp. At random moments: runtime_policy_random.cpp.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "gccl/gccl.hpp"
#include "libgccl/communicator/recovery/agreed.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

TEST_CASE("an all-reduce goes on in place, a broadcast is handed back once, and the program is notified") {
  for (Job job : transports(3)) {
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    Running running(job, [](int rank) {
      gccl::Communicator world(begin());
      struct Heard {
        int noticed = 0, recovered = 0;
        void operator()(const GCCL_Failure& f) {
          ++(f.stage == GCCL_FAILURE_NOTICED ? noticed : recovered);
          RANK_CHECK(f.count == 1 && f.ranks[0] == 1 && f.world_ranks[0] == 1);
          RANK_CHECK(f.size == (f.stage == GCCL_FAILURE_NOTICED ? 3 : 2));
          RANK_CHECK(std::string(f.text).find("rank 1") != std::string::npos);
        }
      } heard;
      world.on_failure(heard);
      std::vector<double> x(1000, rank + 1.0);
      ready(world.get());
      // By the sum: where all had that of a call, the size changes in it on one rank and in the next one on another.
      do {
        x.assign(1000, rank + 1.0);
        const GCCL_Call_metrics before = world.metrics().calls[0];
        world.allreduce(x);
        const GCCL_Call_metrics after = world.metrics().calls[0];  // without an attempt that was repeated
        RANK_CHECK(after.calls == before.calls + 1);
        RANK_CHECK(after.failed == 0);
        RANK_CHECK(after.bytes - before.bytes == 8000);
        RANK_CHECK(x[0] == 4 || x[0] == 6);
        RANK_CHECK(x[999] == x[0]);
      } while (x[0] == 6);
      RANK_CHECK(world.rank() == rank / 2);
      x.assign(1000, rank + 1.0);
      world.allreduce(x);
      RANK_CHECK(x[999] == 4);
      GCCL_Request request = GCCL_REQUEST_NULL;
      for (int i = 0; i < 2; ++i) {
        expect(GCCL_Iallreduce(GCCL_IN_PLACE, x.data(), 1, GCCL_FLOAT64, GCCL_SUM, world.get(), &request),
               GCCL_ERR_RANKS_CHANGED, "begun with old numbers");
        expect(GCCL_Send(x.data(), 1, GCCL_FLOAT64, 0, world.get()), GCCL_ERR_RANKS_CHANGED, "sent with old numbers");
      }
      x.assign(1000, rank + 1.0);
      expect(GCCL_Broadcast(x.data(), 1000, GCCL_FLOAT64, 1, world.get()), GCCL_ERR_RANKS_CHANGED, "broadcast");
      expect_text("lost rank 1", "who");
      RANK_CHECK(x[999] == rank + 1.0);
      world.broadcast(x, 1);
      RANK_CHECK(x[999] == 3);
      world.iallreduce(x).wait();
      RANK_CHECK(heard.noticed == 1);
      RANK_CHECK(heard.recovered == 1);
      const GCCL_Metrics m = world.metrics();
      RANK_CHECK(m.failures_noticed == 1);
      RANK_CHECK(m.recoveries == 1);
      RANK_CHECK(m.ranks_lost == 1);
      RANK_CHECK(m.calls_repeated <= 1);
      RANK_CHECK(m.calls_handed_back == 1);
      world.free();
      GCCL_Finalize();
    });
    CHECK(running.await_ready(3));
    running.kill(1, SIGKILL);
    check_others(running.wait(), {1}, describe(job));
  }
}

TEST_CASE("a barrier that is over by the recovery has not failed") {
  for (Job job : transports(3)) {
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    Running running(job, [](int rank) {
      gccl::Communicator world(begin());
      for (int i = 0; i < 3; ++i) {
        if (rank == 1 && i == 1) ::kill(::getpid(), SIGKILL);
        world.barrier();
      }
      for (const GCCL_Call_metrics& m : world.metrics().calls) {
        if (!m.name || std::string(m.name) != "barrier") continue;
        RANK_CHECK(m.calls == 3);
        RANK_CHECK(m.failed == 0);
      }
      world.free();
      GCCL_Finalize();
    });
    check_others(running.wait(), {1}, describe(job));
  }
}

TEST_CASE("a call in place that is handed back leaves alone what lies between its blocks") {
  Job job{.size = 3, .backends = "shm"};
  job.environment["GCCL_ON_FAILURE"] = "shrink";
  const std::vector<End> ends = run(job, [](int) {
    gccl::Communicator world(begin());
    std::vector<int> x = {1, 2, 3, 4, 5, 6};
    const auto write_between = [&](const GCCL_Failure& f) {
      if (f.stage == GCCL_FAILURE_NOTICED) x[1] = 77;
    };
    world.on_failure(write_between);
    lose(world.get(), 1);
    const std::size_t counts[] = {1, 1, 1}, displs[] = {4, 2, 0};
    expect(GCCL_Alltoallv(GCCL_IN_PLACE, nullptr, nullptr, x.data(), counts, displs, GCCL_INT32, world.get()),
           GCCL_ERR_RANKS_CHANGED, "all-to-all");
    RANK_CHECK(x == std::vector<int>({1, 77, 3, 4, 5, 6}));
    world.free();
    GCCL_Finalize();
  });
  check_others(ends, {1});
}

TEST_CASE("what was in flight is lost, and the next barrier makes the communicator smaller") {
  for (const char* backends : {"shm", "tcp"}) {
    Running running({.size = 3, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin();
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
      int notifications = 0;
      RANK_SUCCESS(GCCL_On_failure(
          world, [](GCCL_Comm, const GCCL_Failure*, void* n) { ++*static_cast<int*>(n); }, &notifications));
      ready(world);
      while (rank == 0) ::pause();
      double x = 1;
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, world, &request));
      expect(GCCL_Wait(&request), GCCL_ERR_PEER_LOST, "in flight");
      RANK_CHECK(notifications == 1);
      expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 0, world), GCCL_ERR_PEER_LOST, "on what has failed");
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_CHECK(notifications == 2);
      RANK_SUCCESS(GCCL_Comm_ack_failed(world));
      int size = 0, mine = 0;
      RANK_SUCCESS(GCCL_Comm_size(world, &size));
      RANK_SUCCESS(GCCL_Comm_rank(world, &mine));
      RANK_CHECK(size == 2);
      RANK_CHECK(mine == rank - 1);
      if (mine == 0)
        RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT64, 1, world));
      else
        RANK_SUCCESS(GCCL_Recv(&x, 1, GCCL_FLOAT64, 0, world));
      RANK_SUCCESS(GCCL_Finalize());
    });
    CHECK(running.await_ready(3));
    usleep(5000);
    running.kill(0, SIGKILL);
    check_others(running.wait(), {0});
  }
}

TEST_CASE("messages that were not received before a recovery are gone, those to oneself as those to others") {
  for (Job job : transports(3)) {
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    Running running(job, [](int before) {
      const GCCL_Comm world = begin();
      const int old = 111;
      if (before != 2)
        for (const int to : {0, 1}) RANK_SUCCESS(GCCL_Send(&old, 1, GCCL_INT32, to, world));
      ready(world);
      // The size may change in one call on one rank and in the next on the other, so the loop ends by what is reduced.
      GCCL_Result r = GCCL_SUCCESS;
      for (int all = 1; r == GCCL_SUCCESS && all;) {
        const int mine = size_of(world) == 3;
        r = GCCL_Allreduce(&mine, &all, 1, GCCL_INT32, GCCL_MAX, world);
      }
      RANK_CHECK(r == GCCL_SUCCESS);
      RANK_SUCCESS(GCCL_Comm_ack_failed(world));
      const int rank = rank_of(world);
      for (const int to : {0, 1}) {
        const int mine = 10 * rank + to;
        expect(GCCL_Send(&mine, 1, GCCL_INT32, to, world), GCCL_SUCCESS, "send");
      }
      for (const int from : {0, 1}) {
        int got = 0;
        expect(GCCL_Recv(&got, 1, GCCL_INT32, from, world), GCCL_SUCCESS, "recv");
        RANK_CHECK(got == 10 * from + rank);
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
    REQUIRE(running.await_ready(3));
    running.kill(2, SIGKILL);
    check_others(running.wait(), {2}, describe(job));
  }
}

TEST_CASE("policies that differ are found, and wrong ones refused") {
  check({.size = 2, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin();
    expect(GCCL_Comm_set_on_failure(world, rank == 0 ? GCCL_SHRINK : GCCL_FAIL), GCCL_ERR_MISMATCH,
           "different policies");
    expect_text("rank 0 sets GCCL_SHRINK, rank 1 sets GCCL_FAIL", "who");
    expect(GCCL_Comm_set_on_failure(world, GCCL_Failure_policy(7)), GCCL_ERR_INVALID_ARGUMENT, "policy");
    expect(GCCL_Comm_set_on_failure(GCCL_COMM_NULL, GCCL_FAIL), GCCL_ERR_INVALID_ARGUMENT, "comm");
    expect(GCCL_On_failure(GCCL_COMM_NULL, nullptr, nullptr), GCCL_ERR_INVALID_ARGUMENT, "comm");
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
  const std::vector<End> ends = run({.size = 2, .backends = "shm"}, [](int rank) {
    if (rank == 1) ::setenv("GCCL_ON_FAILURE", "shrink", 1);
    GCCL_Comm world = GCCL_COMM_NULL;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_USAGE, "different environments");
    expect_text("GCCL_ON_FAILURE differs: rank 0 has \"fail\", rank 1 has \"shrink\"", "who");
  });
  for (const End& e : ends) CHECK_MESSAGE(e.good(), texts(ends));
}

TEST_CASE("one communicator of a process shrinks by itself, and those made from it do not") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin(), child = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &child));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(child, GCCL_SHRINK));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(child, GCCL_SHRINK));
      expect(GCCL_Comm_set_on_failure(world, GCCL_SHRINK), GCCL_ERR_NOT_SUPPORTED, "a second one");
      expect_text("has another communicator with a policy other than GCCL_FAIL", "why");
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_FAIL));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(child, GCCL_FAIL));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
      GCCL_Comm second = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &second));
      expect(GCCL_Comm_set_on_failure(second, GCCL_SHRINK), GCCL_ERR_NOT_SUPPORTED, "a child");
      RANK_SUCCESS(GCCL_Comm_free(&second));
      RANK_SUCCESS(GCCL_Comm_free(&child));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("a rank that was given up for its slowness does not go on alone") {
  for (const char* backends : {"shm", "tcp"}) {
    Job job = {.size = 3, .backends = backends};
    job.environment = {{"GCCL_ON_FAILURE", "shrink"}, {"GCCL_TIMEOUT_MS", "300"}};
    check(job, [](int rank) {
      GCCL_Comm world = begin();
      double x = 1, sum = 0;
      RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
      if (rank == 0) ::usleep(2000000);
      expect(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world), GCCL_ERR_TIMEOUT, "late");
      GCCL_Finalize();
    });
  }
}

TEST_CASE("ranks up to two calls apart agree on who is furthest, and on what all have completed") {
  // One of three calls, each completed or not: a barrier counts as completed before the others have come.
  for (std::uint32_t first = 0; first < 20; ++first)
    for (unsigned drawn = 0; drawn < 6 * 6 * 6; ++drawn) {
      std::uint32_t calls[3], furthest = 0;
      bool done[3];
      std::uint64_t flags = ~std::uint64_t(0);
      for (unsigned r = 0, d = drawn; r < 3; ++r, d /= 6) {
        calls[r] = first + d % 3;
        done[r] = d % 6 >= 3;
        furthest = std::max(furthest, calls[r]);
        flags &= gccl::Agreed::flags(calls[r], done[r]);
      }
      for (unsigned r = 0; r < 3; ++r) {
        bool by_all = true;
        for (unsigned o = 0; o < 3; ++o) by_all = by_all && (calls[o] > calls[r] || (calls[o] == calls[r] && done[o]));
        CHECK(bool(flags & gccl::Agreed::completed(calls[r])) == by_all);
        CHECK(gccl::Agreed::furthest(flags, calls[r]) == furthest);
      }
    }
}

TEST_CASE("a call with a number that no rank has any more is handed back, not refused") {
  for (const char* backends : {"shm", "tcp"}) {
    Job job{.size = 3, .backends = backends};
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    const std::vector<End> ends = run(job, [](int) {
      GCCL_Comm world = begin(), child = GCCL_COMM_NULL;
      lose(world, 0);
      double x = 1;
      const int ranks[] = {1, 2};
      RANK_SUCCESS(GCCL_Barrier(world));
      expect(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 2, world), GCCL_ERR_RANKS_CHANGED, "broadcast");
      expect(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 2, world), GCCL_ERR_INVALID_ARGUMENT, "broadcast anew");
      RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 1, world));
      lose(world, 0);  // which was rank 1
      RANK_SUCCESS(GCCL_Barrier(world));
      expect(GCCL_Comm_create(world, ranks, 2, &child), GCCL_ERR_RANKS_CHANGED, "create");
      RANK_SUCCESS(GCCL_Finalize());
    });
    check_others(ends, {0, 1});
  }
}

TEST_CASE("a call that is handed back reads none of its lengths, which may be for another number of ranks") {
  Job job{.size = 3, .backends = "shm"};
  job.environment["GCCL_ON_FAILURE"] = "shrink";
  const std::vector<End> ends = run(job, [](int) {
    const GCCL_Comm c = begin();
    lose(c, 0);
    RANK_SUCCESS(GCCL_Barrier(c));
    void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RANK_CHECK(page != MAP_FAILED);
    float x[2] = {}, y[2] = {};
    GCCL_Request q = GCCL_REQUEST_NULL;
    for (const auto* n : {static_cast<const std::size_t*>(page), static_cast<const std::size_t*>(nullptr)}) {
      const GCCL_Result results[] = {GCCL_Iallgatherv(x, y, n, n, GCCL_FLOAT32, c, &q),
                                     GCCL_Ireduce_scatterv(x, y, n, GCCL_FLOAT32, GCCL_SUM, c, &q),
                                     GCCL_Ialltoallv(x, n, n, y, n, n, GCCL_FLOAT32, c, &q)};
      for (const GCCL_Result r : results) expect(r, GCCL_ERR_RANKS_CHANGED, "begun with old lengths");
    }
    const auto* const lengths = static_cast<const std::size_t*>(page);
    expect(GCCL_Alltoallv(x, lengths, lengths, y, lengths, lengths, GCCL_FLOAT32, c), GCCL_ERR_RANKS_CHANGED,
           "made with old lengths");
    const std::size_t ones[] = {1, 1};
    RANK_SUCCESS(GCCL_Alltoallv(x, ones, nullptr, y, ones, nullptr, GCCL_FLOAT32, c));
    RANK_SUCCESS(GCCL_Finalize());
  });
  check_others(ends, {0});
}

TEST_CASE("in C++ too a call with sizes of before is handed back on all ranks, and refused once it is made anew") {
  for (const char* backends : {"shm", "tcp"}) {
    Job job{.size = 3, .backends = backends};
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    const std::vector<End> ends = run(job, [](int rank) {
      gccl::Communicator world(begin());
      lose(world.get(), 1);
      const std::vector<double> two(2, rank);
      std::vector<double> six(6, 5), out(2);
      const std::vector<std::size_t> counts(3, 2);
      const auto result_of = [](const auto& call, std::string* text = nullptr) {
        try {
          call();
        } catch (const gccl::Error& e) {
          if (text) *text = e.what();
          return e.result();
        }
        return GCCL_Result(GCCL_SUCCESS);
      };
      const std::function<void()> stale[] = {[&] { (void)world.iallgather(two, six); },
                                             [&] { (void)world.iallgather(six); },
                                             [&] { (void)world.iallgatherv(two, six, counts); },
                                             [&] { (void)world.ireduce_scatter(six, out); },
                                             [&] { (void)world.ireduce_scatterv(six, out, counts); },
                                             [&] { (void)world.ialltoall(six, six); },
                                             [&] { (void)world.ialltoallv(six, counts, six, counts); },
                                             [&] { (void)world.iscatter(six, out, 0); },
                                             [&] { (void)world.iscatter(six, gccl::in_place, 0); },
                                             [&] { (void)world.igather(two, six, 0); },
                                             [&] { (void)world.igather(gccl::in_place, six, 2); },
                                             [&] { (void)world.ireduce(two, six, 0); },
                                             [&] { (void)world.ireduce(gccl::in_place, out, 2); }};
      std::string text;
      do {
        six.assign(6, 1);
        world.allreduce(six);
      } while (six[0] == 3);
      for (std::size_t i = 0; i < std::size(stale); ++i)
        if (const GCCL_Result r = result_of(stale[i], &text); r != GCCL_ERR_RANKS_CHANGED)
          report("call " + std::to_string(i) + " begun with old sizes: " + std::to_string(int(r)) + ", " + text);
      // An all-reduce is repeated by those that are left, so it is none that goes by numbers.
      RANK_CHECK(result_of([&] { world.allreduce(two, six); }) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_CHECK(result_of([&] { world.scatter(six, out, 0); }, &text) == GCCL_ERR_RANKS_CHANGED);
      RANK_CHECK(text.find("scatter #") != std::string::npos);
      RANK_CHECK(text.find(" of 2 x f64, root 0: ranks have other numbers now: lost rank 1") != std::string::npos);
      if (world.rank() == 0) {
        RANK_CHECK(result_of([&] { world.scatter(six, out, 0); }, &text) == GCCL_ERR_INVALID_ARGUMENT);
        RANK_CHECK(text == "scatter: the root's input has 6 elements, expected 4");
      }
      std::vector<double> four(4);
      world.allgather(two, four);
      RANK_CHECK(four == std::vector<double>({0, 0, 2, 2}));
      RANK_CHECK(world.metrics().calls_handed_back == 1);
      world.free();
      GCCL_Finalize();
    });
    check_others(ends, {1});
  }
}

TEST_CASE("GCCL_Abort ends a call that waits for others to make the communicator smaller") {
  Job job{.size = 3, .backends = "shm", .limit_s = 20};
  job.environment["GCCL_ON_FAILURE"] = "shrink";
  const std::vector<End> ends = run(job, [](int rank) {
    GCCL_Comm world = begin();
    lose(world, 0);
    if (rank == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(700));
    std::thread aborts([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      RANK_SUCCESS(GCCL_Abort(world, 7));
    });
    expect(GCCL_Barrier(world), GCCL_ERR_ABORTED, "aborted");
    expect_text("with code 7", "why");
    aborts.join();
  });
  CHECK_MESSAGE(ends[2].good(), texts(ends));
}
