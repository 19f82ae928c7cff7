// What goes wrong around a communicator: calls that differ, ranks that die, time that runs out, aborts. First the harm,
// then what each rank reports, and that nothing hangs.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace runtime_faults {

// Reported at once, not by a limit or by keep-alives; generous to a busy machine.
constexpr double kSoon = 10;

// ---- Calls that differ ----

struct Difference {
  const char* name;
  std::function<GCCL_Result(GCCL_Comm, int rank)> call;
  const char *said, *also_said;  // of the two calls
};

const std::vector<Difference>& differences() {
  static float in[64], out[256];
  static const std::vector<Difference> all = {
      {"count", [](GCCL_Comm c, int r) { return GCCL_Allreduce(in, out, r == 1 ? 5 : 4, GCCL_FLOAT32, GCCL_SUM, c); },
       "of 4 x f32", "of 5 x f32"},
      {"type",
       [](GCCL_Comm c, int r) { return GCCL_Allreduce(in, out, 4, r == 1 ? GCCL_INT32 : GCCL_FLOAT32, GCCL_SUM, c); },
       "4 x f32", "4 x i32"},
      {"operation",
       [](GCCL_Comm c, int r) { return GCCL_Allreduce(in, out, 4, GCCL_FLOAT32, r == 1 ? GCCL_MAX : GCCL_SUM, c); },
       "sum", "max"},
      {"root", [](GCCL_Comm c, int r) { return GCCL_Broadcast(out, 4, GCCL_FLOAT32, r == 1 ? 1 : 0, c); },
       "broadcast #1", "of 4 x f32, root "},
      {"collective",
       [](GCCL_Comm c, int r) {
         return r == 1 ? GCCL_Barrier(c) : GCCL_Allreduce(in, out, 4, GCCL_FLOAT32, GCCL_SUM, c);
       },
       "barrier", "allreduce"},
      {"order",
       [](GCCL_Comm c, int r) {
         const GCCL_Result first = r == 1 ? GCCL_Allgather(in, out, 4, GCCL_FLOAT32, c)
                                          : GCCL_Allreduce(in, out, 4, GCCL_FLOAT32, GCCL_SUM, c);
         if (first) return first;
         return r == 1 ? GCCL_Allreduce(in, out, 4, GCCL_FLOAT32, GCCL_SUM, c)
                       : GCCL_Allgather(in, out, 4, GCCL_FLOAT32, c);
       },
       "allreduce", "allgather"},
      {"large",
       [](GCCL_Comm c, int r) {
         std::vector<float> x(1 << 20), y(1 << 20);
         return GCCL_Allreduce(x.data(), y.data(), r == 1 ? x.size() - 1 : x.size(), GCCL_FLOAT32, GCCL_SUM, c);
       },
       "1048576 x f32", "1048575 x f32"},
  };
  return all;
}

TEST_CASE("calls that differ are an error on every rank, which names both") {
  for (const bool checked : {false, true})
    for (Job job : transports(3)) {
      if (checked) job.environment["GCCL_CHECK"] = "1";
      if (checked && job.backends == "tcp") continue;
      check(job, [&](int rank) {
        GCCL_Comm world = begin();
        for (const Difference& d : differences()) {
          GCCL_Comm c = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
          // A rank that only sends may have left the call before anybody saw it: it hears at the latest from what comes
          // next.
          GCCL_Result result = d.call(c, rank);
          for (int more = 0; more < 3 && result == GCCL_SUCCESS; ++more) result = GCCL_Barrier(c);
          const std::string what = std::string(d.name) + " on rank " + std::to_string(rank);
          expect(result, GCCL_ERR_MISMATCH, what);
          expect_text(d.said, what);
          expect_text(d.also_said, what);
          expect_text("rank ", what);
          // It stays broken, with the same words; the world goes on.
          const std::string text = GCCL_Last_error();
          expect(GCCL_Barrier(c), GCCL_ERR_MISMATCH, what + ", afterwards");
          RANK_CHECK(GCCL_Last_error() == text);
          GCCL_Request request = GCCL_REQUEST_NULL;
          expect(GCCL_Ibarrier(c, &request), GCCL_ERR_MISMATCH, what + ", afterwards");
          RANK_CHECK(request == GCCL_REQUEST_NULL);
          GCCL_Comm_free(&c);
          RANK_CHECK(c == GCCL_COMM_NULL);
          RANK_SUCCESS(GCCL_Barrier(world));
        }
        RANK_SUCCESS(GCCL_Finalize());
      });
    }
}

TEST_CASE("messages that differ from their receives are an error on both sides") {
  for (const Job& job : transports(3))
    check(job, [&](int rank) {
      GCCL_Comm world = begin();
      for (const std::size_t count : {std::size_t(3), std::size_t(5000), std::size_t(1) << 20}) {
        GCCL_Comm c = copy_of(world);
        std::vector<float> x(count + 1);
        GCCL_Result result = GCCL_SUCCESS;
        if (rank == 0) result = GCCL_Send(x.data(), count, GCCL_FLOAT32, 2, c);
        if (rank == 2) result = GCCL_Recv(x.data(), count + 1, GCCL_FLOAT32, 0, c);
        if (rank == 2) expect_text(std::to_string(count) + " x f32", "recv");
        for (int more = 0; more < 3 && result == GCCL_SUCCESS; ++more) result = GCCL_Barrier(c);
        expect(result, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank) + ", " + std::to_string(count));
        GCCL_Comm_free(&c);
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// The receive has the length of the message's first piece.
TEST_CASE("one element of a longer user-defined type is received as no element of a shorter one") {
  for (const Job& job : transports(2))
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Dtype type;
      RANK_SUCCESS(GCCL_Type_create(rank == 0 ? 16384 : 8192, &type));
      std::vector<std::byte> x(16384);
      for (const int late : {0, 1}) {
        GCCL_Comm c = copy_of(world);
        if (rank == late) ::usleep(20000);
        GCCL_Result result = rank == 0 ? GCCL_Send(x.data(), 1, type, 1, c) : GCCL_Recv(x.data(), 1, type, 0, c);
        if (rank == 1) expect(result, GCCL_ERR_MISMATCH, "recv");
        for (int more = 0; more < 3 && result == GCCL_SUCCESS; ++more) result = GCCL_Barrier(c);
        expect(result, GCCL_ERR_MISMATCH, "rank " + std::to_string(rank));
        GCCL_Comm_free(&c);
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("lists that differ make no communicator, on any rank, and leave the parent usable") {
  check({.size = 3, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
    const int forth[] = {0, 1}, back[] = {1, 0}, all[] = {0, 1, 2};
    expect(GCCL_Comm_create(world, rank == 1 ? back : forth, 2, &c), GCCL_ERR_MISMATCH, "another order");
    expect_text("ranks 1 and 0 list 2 ranks each, but others or in another order", "another order");
    expect(GCCL_Comm_create(world, rank == 1 ? nullptr : forth, rank == 1 ? 0 : 2, &c), GCCL_ERR_MISMATCH, "none");
    expect(GCCL_Comm_create(world, all, rank == 1 ? 3 : 2, &c), GCCL_ERR_MISMATCH, "another length");
    expect_text("rank 1 lists 3 ranks, rank 0 lists 2 ranks, and 2 ranks find themselves in a list", "another length");
    expect_text("the same list", "create");
    RANK_CHECK(c == GCCL_COMM_NULL);
    RANK_SUCCESS(GCCL_Comm_create(world, rank == 2 ? nullptr : back, rank == 2 ? 0 : 2, &c));
    if (c) RANK_SUCCESS(GCCL_Comm_free(&c));
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// ---- Time ----

TEST_CASE("a timeout names rank, operation and peer, and the other ranks hear of it") {
  for (const Job& job : transports(3))
    check(job, [&](int rank) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      for (const std::size_t count : {std::size_t(2), std::size_t(1) << 18}) {
        RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
        RANK_SUCCESS(GCCL_Comm_set_timeout(c, 150));
        std::vector<double> x(count), y(count);
        const auto began = Clock::now();
        if (rank != 1) {
          expect(GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, c), GCCL_ERR_TIMEOUT, "allreduce");
          RANK_CHECK(seconds_since(began) < kSoon);
          expect_text("allreduce #1 of " + std::to_string(count) + " x f64", "the operation");
          // Rank 1, or a rank that waits for it.
          expect_text("waiting for rank ", "the peer");
          expect_text("150 ms", "the limit");
        }
        RANK_SUCCESS(GCCL_Barrier(world));
        if (rank == 1) {
          // It may find all it needs already there; not so in the next call.
          GCCL_Result result = GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, c);
          if (result == GCCL_SUCCESS) result = GCCL_Barrier(c);
          expect(result, GCCL_ERR_TIMEOUT, "too late");
        }
        GCCL_Comm_free(&c);
      }
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      RANK_SUCCESS(GCCL_Comm_set_timeout(c, 100));
      double x = 0;
      if (rank == 0) {
        const auto began = Clock::now();
        expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 2, c), GCCL_ERR_TIMEOUT, "recv");
        RANK_CHECK(seconds_since(began) >= 0.09);
        expect_text("recv of 1 x f64 from rank 2", "recv");
        expect_text("rank 0", "recv");
      }
      RANK_SUCCESS(GCCL_Barrier(world));
      GCCL_Comm_free(&c);
      RANK_CHECK(GCCL_Comm_set_timeout(world, 0) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, GCCL_TIMEOUT_NONE));
      GCCL_Request request = GCCL_REQUEST_NULL;
      if (rank == 0) {
        // Not in time for the wait, but in time.
        RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_FLOAT64, 1, world, &request));
        expect(GCCL_Wait_for(&request, 20), GCCL_IN_PROGRESS, "wait");
        RANK_CHECK(request != GCCL_REQUEST_NULL);
      }
      RANK_SUCCESS(GCCL_Barrier(world));
      double y = 7;
      if (rank == 1) RANK_SUCCESS(GCCL_Send(&y, 1, GCCL_FLOAT64, 0, world));
      if (rank == 0) {
        RANK_SUCCESS(GCCL_Wait(&request));
        RANK_CHECK(x == 7);
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// ---- Ranks that are gone ----

// Rank `victim` is killed while all are busy with all-reduces of `count` doubles; the others must be notified soon.
void kill_in_the_middle(const Job& job, int victim, std::size_t count) {
  Running running(job, [&](int) {
    GCCL_Comm world = begin();
    std::vector<double> x(count, 1.0), y(count);
    GCCL_Result result = GCCL_SUCCESS;
    ready(world);
    auto last = Clock::now();
    const auto began = last;
    while (result == GCCL_SUCCESS && seconds_since(began) < 60) {
      last = Clock::now();
      result = GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, world);
    }
    expect(result, GCCL_ERR_PEER_LOST, "allreduce");
    expect_text("rank " + std::to_string(victim), "who was lost");
    RANK_CHECK(seconds_since(last) < kSoon);
    // The same again, at once; and Finalize leaves.
    const auto now = Clock::now();
    expect(GCCL_Barrier(world), GCCL_ERR_PEER_LOST, "barrier");
    GCCL_Finalize();
    RANK_CHECK(seconds_since(now) < kSoon);
  });
  CHECK(running.await_ready(job.size));
  usleep(30000);
  running.kill(victim, SIGKILL);
  const std::vector<End> ends = running.wait();
  check_others(ends, {victim}, describe(job) + ", " + std::to_string(count) + " doubles");
  CHECK(ends[std::size_t(victim)].signal == SIGKILL);
}

TEST_CASE("a rank killed in the middle of a collective is named to all others soon") {
  for (const std::size_t count : {std::size_t(1), std::size_t(1000), std::size_t(1) << 20}) {
    for (const Job& job : transports(4)) kill_in_the_middle(job, 2, count);
    kill_in_the_middle({.size = 2, .backends = "shm"}, 0, count);
    kill_in_the_middle({.size = 2, .backends = "tcp"}, 1, count);
  }
}

TEST_CASE("a rank that exits without finalizing is named; whom it does not concern goes on") {
  for (const Job& job : transports(3))
    check(job, [&](int rank) {
      GCCL_Comm world = begin(), others = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, rank == 1 ? GCCL_UNDEFINED : 0, 0, &others));
      leave_before(world, 1);
      if (rank == 1) _exit(0);
      RANK_SUCCESS(GCCL_Barrier(others));  // both are through: the news of the loss must not overtake the last messages
      const auto began = Clock::now();
      expect(GCCL_Barrier(world), GCCL_ERR_PEER_LOST, "barrier");
      expect_text("rank 1", "barrier");
      RANK_CHECK(seconds_since(began) < kSoon);
      int one = 1, sum = 0;
      for (int i = 0; i < 100; ++i) RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_INT32, GCCL_SUM, others));
      RANK_CHECK(sum == 2);
      RANK_SUCCESS(GCCL_Comm_free(&others));
      GCCL_Finalize();
    });
}

// ---- Aborts ----

TEST_CASE("an abort from another thread ends what every rank waits for, with its code; other communicators go on") {
  for (const Job& job : transports(3))
    check(job, [&](int rank) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &c));
      std::thread aborts;
      if (rank == 2)
        aborts = std::thread([c] {
          usleep(50000);
          GCCL_Abort(c, 4711);
        });
      int x = 0;
      const auto began = Clock::now();
      expect(GCCL_Recv(&x, 1, GCCL_INT32, (3 - rank) % 3, c), GCCL_ERR_ABORTED, "recv");
      expect_text("4711", "the code");
      expect_text("rank 0 (world rank 2)", "who called it");
      RANK_CHECK(seconds_since(began) < kSoon);
      if (aborts.joinable()) aborts.join();
      expect(GCCL_Barrier(c), GCCL_ERR_ABORTED, "afterwards");
      GCCL_Comm_free(&c);
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("an abort in a loop of small calls is heard by all") {
  for (const Job& job : transports(3))
    check(job, [&](int rank) {
      GCCL_Comm world = begin();
      GCCL_Result result = GCCL_SUCCESS;
      const auto began = Clock::now();
      for (int i = 0; result == GCCL_SUCCESS && seconds_since(began) < 60; ++i) {
        if (rank == 0 && i == 20) RANK_SUCCESS(GCCL_Abort(world, 5));
        int x = 1, y = 0;
        result = GCCL_Allreduce(&x, &y, 1, GCCL_INT32, GCCL_SUM, world);
      }
      expect(result, GCCL_ERR_ABORTED, "allreduce");
      expect_text("code 5", "the code");
      GCCL_Finalize();
    });
}

// The word of the abort itself is often later than the end.
TEST_CASE("GCCL_Finalize returns what failed on any of several communicators that another rank has freed") {
  for (int repeat = 0; repeat < 5; ++repeat)
    for (const Job& job : transports(4))
      check(job, [](int rank) {
        GCCL_Comm world = begin(), pairs[3] = {};
        int x = rank, y = 0;
        for (int other = 1; other < 4; ++other) {
          GCCL_Comm& pair = pairs[other - 1];
          RANK_SUCCESS(GCCL_Comm_split(world, rank == 0 || rank == other ? 0 : GCCL_UNDEFINED, rank, &pair));
          if (pair) RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_INT32, GCCL_SUM, pair));
        }
        RANK_SUCCESS(GCCL_Barrier(world));
        if (rank == 0)
          for (GCCL_Comm& pair : pairs) {
            RANK_SUCCESS(GCCL_Abort(pair, 1));
            GCCL_Comm_free(&pair);
          }
        const GCCL_Result result = GCCL_Finalize();
        if (rank != 0) expect(result, GCCL_ERR_ABORTED, "finalize of rank " + std::to_string(rank));
      });
}

}  // namespace runtime_faults
