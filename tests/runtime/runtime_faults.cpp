// What goes wrong around a communicator: calls that differ, ranks that die, time that runs out, aborts, wrong
// arguments. First the harm, then who is told what, and that nothing hangs.
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

namespace {

// Told at once, not by a limit or by keep-alives; generous to a busy machine.
constexpr double kSoon = 10;

// Every wire a fault must travel over.
std::vector<Job> wires(int size) {
  return {{.size = size, .backends = "shm"},
          {.size = size, .backends = "tcp"},
          {.size = size,
           .backends = "shm,tcp",
           .nodes = size == 3 ? std::vector<int>{0, 0, 1} : std::vector<int>{0, 1, 0, 1}}};
}

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
    for (Job job : wires(3)) {
      if (checked) job.environment["GCCL_CHECK"] = "1";
      if (checked && job.backends == "tcp") continue;
      check(job, [&](int rank) {
        GCCL_Comm world = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Init(&world, nullptr));
        for (const Difference& d : differences()) {
          GCCL_Comm c = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
          // Who only sends may have left the call before anybody saw it: it hears at the latest from what comes next.
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
  for (const Job& job : wires(3))
    check(job, [&](int rank) {
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      for (const std::size_t count : {std::size_t(3), std::size_t(5000), std::size_t(1) << 20}) {
        GCCL_Comm c = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
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

TEST_CASE("lists that differ make no communicator, on any rank, and leave the parent usable") {
  check({.size = 3, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
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
  for (const Job& job : wires(3))
    check(job, [&](int rank) {
      GCCL_Comm world = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      for (const std::size_t count : {std::size_t(2), std::size_t(1) << 18}) {
        RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
        RANK_SUCCESS(GCCL_Comm_set_timeout(c, 150));
        std::vector<double> x(count), y(count);
        const auto began = Clock::now();
        if (rank != 1) {
          expect(GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, c), GCCL_ERR_TIMEOUT, "allreduce");
          RANK_CHECK(seconds_since(began) < kSoon);
          expect_text("allreduce #1 of " + std::to_string(count) + " x f64", "the operation");
          // Rank 1, or whoever waits for it.
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

// Rank `victim` is killed while all are busy with all-reduces of `count` doubles; the others must be told soon.
void kill_in_the_middle(const Job& job, int victim, std::size_t count) {
  Running running(job, [&](int rank) {
    GCCL_Comm world = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    std::vector<double> x(count, 1.0), y(count);
    GCCL_Result result = GCCL_SUCCESS;
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == victim) {
      std::printf("ready\n");
      std::fflush(stdout);
    }
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
  CHECK(running.await(victim, "ready\n"));
  usleep(30000);
  running.kill(victim, SIGKILL);
  const std::vector<End> ends = running.wait();
  for (std::size_t r = 0; r < ends.size(); ++r)
    if (int(r) != victim) CHECK_MESSAGE(ends[r].good(), describe(job) << ", " << count << " doubles\n" << texts(ends));
  CHECK(ends[std::size_t(victim)].signal == SIGKILL);
}

TEST_CASE("a rank killed in the middle of a collective is named to all others soon") {
  for (const std::size_t count : {std::size_t(1), std::size_t(1000), std::size_t(1) << 20}) {
    for (const Job& job : wires(4)) kill_in_the_middle(job, 2, count);
    kill_in_the_middle({.size = 2, .backends = "shm"}, 0, count);
    kill_in_the_middle({.size = 2, .backends = "tcp"}, 1, count);
  }
}

TEST_CASE("a rank that exits without finalizing is named; whom it does not concern goes on") {
  for (const Job& job : wires(3))
    check(job, [&](int rank) {
      GCCL_Comm world = GCCL_COMM_NULL, others = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      RANK_SUCCESS(GCCL_Comm_split(world, rank == 1 ? GCCL_UNDEFINED : 0, 0, &others));
      RANK_SUCCESS(GCCL_Barrier(world));
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
  for (const Job& job : wires(3))
    check(job, [&](int rank) {
      GCCL_Comm world = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      std::thread aborts;
      if (rank == 2)
        aborts = std::thread([c] {
          usleep(50000);
          GCCL_Abort(c, 4711);
        });
      int x = 0;
      const auto began = Clock::now();
      expect(GCCL_Recv(&x, 1, GCCL_INT32, (rank + 1) % 3, c), GCCL_ERR_ABORTED, "recv");
      expect_text("4711", "the code");
      expect_text("rank 2", "who called it");
      RANK_CHECK(seconds_since(began) < kSoon);
      if (aborts.joinable()) aborts.join();
      expect(GCCL_Barrier(c), GCCL_ERR_ABORTED, "afterwards");
      GCCL_Comm_free(&c);
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("an abort in a loop of small calls is heard by all") {
  for (const Job& job : wires(3))
    check(job, [&](int rank) {
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
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

// ---- Wrong arguments ----

#define WRONG(call, word)                             \
  do {                                                \
    expect((call), GCCL_ERR_INVALID_ARGUMENT, #call); \
    expect_text(word, #call);                         \
  } while (false)

TEST_CASE("every wrong argument is an error that says which, and leaves the communicator usable") {
  check({.size = 2, .backends = "shm"}, [](int rank) {
    GCCL_Comm w = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
    WRONG(GCCL_Init(nullptr, nullptr), "world is null");
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.struct_bytes = 3;
    WRONG(GCCL_Init(&w, &config), "struct_bytes");
    WRONG(GCCL_Barrier(w), "GCCL_COMM_NULL");
    const int ranks_wanted[] = {0, -1};
    WRONG(GCCL_Init_ranks(&w, ranks_wanted, 0, nullptr), "n is 0");
    WRONG(GCCL_Init_ranks(nullptr, ranks_wanted, 1, nullptr), "null");
    WRONG(GCCL_Init_ranks(&w, nullptr, 1, nullptr), "null");
    GCCL_Comm two[2];
    WRONG(GCCL_Init_ranks(two, ranks_wanted, 2, nullptr), "ranks[1] is -1");
    RANK_SUCCESS(GCCL_Init(&w, nullptr));
    // Repeated small calls take a short way: wrong ones among them must not.
    float in[64] = {}, out[64] = {};
    for (int i = 0; i < 3; ++i) {
      RANK_SUCCESS(GCCL_Allreduce(in, out, 4, GCCL_FLOAT32, GCCL_SUM, w));
      RANK_SUCCESS(GCCL_Broadcast(out, 4, GCCL_FLOAT32, 0, w));
      RANK_SUCCESS(GCCL_Allgather(in, out, 4, GCCL_FLOAT32, w));
      RANK_SUCCESS(GCCL_Alltoall(in, out, 4, GCCL_FLOAT32, w));
    }
    const GCCL_Dtype f = GCCL_FLOAT32;
    const std::size_t counts[2] = {2, 2}, huge[2] = {SIZE_MAX / 2, SIZE_MAX / 2}, far[2] = {0, SIZE_MAX / 2},
                      uneven[2] = {1, 3};
    GCCL_Request q = GCCL_REQUEST_NULL;
    WRONG(GCCL_Allreduce(nullptr, out, 4, f, GCCL_SUM, w), "sendbuf is null");
    WRONG(GCCL_Allreduce(in, nullptr, 4, f, GCCL_SUM, w), "recvbuf is null");
    WRONG(GCCL_Allreduce(in, GCCL_IN_PLACE, 4, f, GCCL_SUM, w), "recvbuf is GCCL_IN_PLACE");
    WRONG(GCCL_Allreduce(in, out, 4, 77, GCCL_SUM, w), "dtype 77");
    WRONG(GCCL_Allreduce(in, out, 4, -1, GCCL_SUM, w), "dtype -1");
    WRONG(GCCL_Allreduce(in, out, 4, 1000, GCCL_SUM, w), "dtype 1000");
    WRONG(GCCL_Allreduce(in, out, 4, f, 5, w), "op 5");
    WRONG(GCCL_Allreduce(in, out, 4, f, -1, w), "op -1 is unknown");
    WRONG(GCCL_Allreduce(in, out, 4, f, INT32_MIN, w), "op -2147483648 is unknown");
    WRONG(GCCL_Allreduce(in, out, 4, f, 1000, w), "op 1000");
    WRONG(GCCL_Allreduce(in, out, SIZE_MAX, f, GCCL_SUM, w), "count is ");
    WRONG(GCCL_Allreduce(in, out, 4, f, GCCL_SUM, GCCL_COMM_NULL), "GCCL_COMM_NULL");
    WRONG(GCCL_Iallreduce(in, out, 4, f, GCCL_SUM, w, nullptr), "request is null");
    WRONG(GCCL_Iallreduce(nullptr, out, 4, f, GCCL_SUM, w, &q), "allreduce: sendbuf is null");
    RANK_CHECK(q == GCCL_REQUEST_NULL);
    WRONG(GCCL_Broadcast(nullptr, 4, f, 0, w), "buf is null");
    WRONG(GCCL_Broadcast(GCCL_IN_PLACE, 4, f, 0, w), "GCCL_IN_PLACE");
    WRONG(GCCL_Broadcast(out, 4, f, 2, w), "root is 2");
    WRONG(GCCL_Broadcast(out, 4, f, -1, w), "root is -1");
    WRONG(GCCL_Reduce(nullptr, out, 4, f, GCCL_SUM, 0, w), "sendbuf is null");
    if (rank == 0) WRONG(GCCL_Reduce(in, nullptr, 4, f, GCCL_SUM, 0, w), "recvbuf is null");
    if (rank == 1) WRONG(GCCL_Reduce(GCCL_IN_PLACE, out, 4, f, GCCL_SUM, 0, w), "GCCL_IN_PLACE");
    WRONG(GCCL_Reduce(in, out, 4, f, GCCL_SUM, 9, w), "root is 9");
    WRONG(GCCL_Allgather(nullptr, out, 4, f, w), "sendbuf is null");
    WRONG(GCCL_Allgather(in, nullptr, 4, f, w), "recvbuf is null");
    WRONG(GCCL_Allgather(in, GCCL_IN_PLACE, 4, f, w), "recvbuf is GCCL_IN_PLACE");
    WRONG(GCCL_Allgather(in, out, SIZE_MAX / 8, f, w), "count is ");
    WRONG(GCCL_Allgatherv(in, out, nullptr, nullptr, f, w), "counts is null");
    WRONG(GCCL_Allgatherv(nullptr, out, counts, nullptr, f, w), "sendbuf is null");
    WRONG(GCCL_Allgatherv(in, nullptr, counts, nullptr, f, w), "recvbuf is null");
    WRONG(GCCL_Allgatherv(in, out, huge, nullptr, f, w), "counts[");
    WRONG(GCCL_Allgatherv(in, out, counts, far, f, w), "counts[1]");
    WRONG(GCCL_Reduce_scatter(nullptr, out, 4, f, GCCL_SUM, w), "sendbuf is null");
    WRONG(GCCL_Reduce_scatter(in, nullptr, 4, f, GCCL_SUM, w), "recvbuf is null");
    WRONG(GCCL_Reduce_scatterv(in, out, nullptr, f, GCCL_SUM, w), "counts is null");
    WRONG(GCCL_Reduce_scatterv(in, out, huge, f, GCCL_SUM, w), "counts[");
    WRONG(GCCL_Alltoall(nullptr, out, 4, f, w), "sendbuf is null");
    WRONG(GCCL_Alltoall(in, nullptr, 4, f, w), "recvbuf is null");
    WRONG(GCCL_Alltoall(in, GCCL_IN_PLACE, 4, f, w), "recvbuf is GCCL_IN_PLACE");
    WRONG(GCCL_Alltoallv(in, nullptr, nullptr, out, counts, nullptr, f, w), "sendcounts is null");
    WRONG(GCCL_Alltoallv(in, counts, nullptr, out, nullptr, nullptr, f, w), "recvcounts is null");
    WRONG(GCCL_Alltoallv(in, huge, nullptr, out, huge, nullptr, f, w), "counts[");
    WRONG(GCCL_Alltoallv(in, counts, far, out, counts, nullptr, f, w), "sendcounts[1]");
    WRONG(GCCL_Alltoallv(in, uneven, nullptr, out, counts, nullptr, f, w), "sends itself");
    if (rank == 0) WRONG(GCCL_Scatter(nullptr, out, 4, f, 0, w), "sendbuf is null");
    WRONG(GCCL_Scatter(in, nullptr, 4, f, 0, w), "recvbuf is null");
    WRONG(GCCL_Scatter(in, out, 4, f, 2, w), "root is 2");
    WRONG(GCCL_Gather(nullptr, out, 4, f, 0, w), "sendbuf is null");
    if (rank == 0) WRONG(GCCL_Gather(in, nullptr, 4, f, 0, w), "recvbuf is null");
    WRONG(GCCL_Gather(in, out, 4, f, -2, w), "root is -2");
    WRONG(GCCL_Barrier(GCCL_COMM_NULL), "GCCL_COMM_NULL");
    WRONG(GCCL_Ibarrier(w, nullptr), "request is null");
    WRONG(GCCL_Send(nullptr, 4, f, 1, w), "buf is null");
    WRONG(GCCL_Send(in, 4, f, 2, w), "dest is 2");
    WRONG(GCCL_Send(in, 4, f, -1, w), "dest is -1");
    WRONG(GCCL_Recv(nullptr, 4, f, 1, w), "buf is null");
    WRONG(GCCL_Recv(out, 4, f, 2, w), "source is 2");
    WRONG(GCCL_Recv(out, 4, 50, 1, w), "dtype 50");
    WRONG(GCCL_Isend(in, 4, f, 1, w, nullptr), "request is null");
    WRONG(GCCL_Wait(nullptr), "request is null");
    WRONG(GCCL_Waitall(-1, &q), "n is -1");
    WRONG(GCCL_Waitall(1, nullptr), "requests is null");
    int done = 0;
    WRONG(GCCL_Test(nullptr, &done), "request is null");
    WRONG(GCCL_Test(&q, nullptr), "done is null");
    RANK_SUCCESS(GCCL_Test(&q, &done));
    RANK_CHECK(done == 1);
    RANK_SUCCESS(GCCL_Wait(&q));
    WRONG(GCCL_On_complete(
              q, [](GCCL_Result, void*) {}, nullptr),
          "GCCL_REQUEST_NULL");
    WRONG(GCCL_Request_free(nullptr), "request is null");
    expect(GCCL_Group_end(), GCCL_ERR_INVALID_USAGE, "group end");
    WRONG(GCCL_Comm_rank(w, nullptr), "rank is null");
    WRONG(GCCL_Comm_size(w, nullptr), "size is null");
    WRONG(GCCL_Comm_nodes(w, nullptr), "nodes is null");
    WRONG(GCCL_Comm_split(w, -2, 0, &c), "color is -2");
    WRONG(GCCL_Comm_split(w, 0, 0, nullptr), "out is null");
    const int outside[] = {0, 2}, twice[] = {1, 1};
    WRONG(GCCL_Comm_create(w, outside, 2, &c), "ranks[1] is 2");
    WRONG(GCCL_Comm_create(w, twice, 2, &c), "ranks[1] repeats");
    WRONG(GCCL_Comm_create(w, nullptr, 2, &c), "ranks is null");
    WRONG(GCCL_Comm_create(w, outside, -1, &c), "n is -1");
    WRONG(GCCL_Comm_free(nullptr), "comm is null");
    WRONG(GCCL_Comm_free(&c), "GCCL_COMM_NULL");
    WRONG(GCCL_Comm_set_timeout(w, -2), "timeout_ms is -2");
    GCCL_Metrics metrics{};
    WRONG(GCCL_Get_performance_metrics(w, nullptr), "metrics is null");
    WRONG(GCCL_Get_performance_metrics(w, &metrics), "struct_bytes");
    metrics.struct_bytes = 32;
    WRONG(GCCL_Get_performance_metrics(w, &metrics), "struct_bytes");
    GCCL_Dtype d = -1;
    GCCL_Op op = -1;
    WRONG(GCCL_Type_create(0, &d), "0 bytes");
    WRONG(GCCL_Type_create(65537, &d), "65537 bytes");
    WRONG(GCCL_Type_create(8, nullptr), "dtype is null");
    WRONG(GCCL_Type_free(&d), "never created");
    WRONG(GCCL_Op_create(nullptr, nullptr, &op), "function is null");
    WRONG(GCCL_Op_free(&op), "never created");
    RANK_SUCCESS(GCCL_Type_create(8, &d));
    WRONG(GCCL_Allreduce(in, out, 4, d, GCCL_SUM, w), "GCCL_Op_create");
    const GCCL_Dtype kept = d;
    RANK_SUCCESS(GCCL_Type_free(&d));
    WRONG(GCCL_Allreduce(in, out, 4, kept, GCCL_SUM, w), "freed");
    // Nothing of all that has been sent.
    float one = 1, sum = 0;
    RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, f, GCCL_SUM, w));
    RANK_CHECK(sum == 2);
    RANK_SUCCESS(GCCL_Comm_free(&w));
    RANK_CHECK(w == GCCL_COMM_NULL);
    RANK_SUCCESS(GCCL_Finalize());
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("what is freed or finalized with operations under way says so, and requests may be waited for afterwards") {
  for (const Job& job : {Job{.size = 2, .backends = "shm"}, Job{.size = 2, .backends = "tcp"}})
    check(job, [](int) {
      GCCL_Comm world = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      int x = 0, me = 0;
      RANK_SUCCESS(GCCL_Comm_rank(world, &me));
      GCCL_Request request = GCCL_REQUEST_NULL, other = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, 1 - me, c, &request));
      RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, me, c, &other));
      expect(GCCL_Comm_free(&c), GCCL_ERR_INVALID_USAGE, "free");
      expect_text("under way", "free");
      RANK_CHECK(c != GCCL_COMM_NULL);
      expect(GCCL_Finalize(), GCCL_ERR_INVALID_USAGE, "finalize");
      expect(GCCL_Wait(&request), GCCL_ERR_INVALID_USAGE, "wait");
      RANK_SUCCESS(GCCL_Request_free(&other));
    });
}

}  // namespace
