// Wrong arguments of every function, and calls at the wrong time: an error that says which, and the communicator goes
// on.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// What the calls below are given.
struct Given {
  GCCL_Comm world = GCCL_COMM_NULL, comm = GCCL_COMM_NULL, two[2] = {};
  GCCL_Config config = GCCL_CONFIG_INIT;
  float in[64] = {}, out[64] = {};
  GCCL_Request request = GCCL_REQUEST_NULL;
  int done = 0;
  GCCL_Metrics metrics{}, short_metrics{};
  GCCL_Dtype unmade = -1, made = -1, freed = -1;
  GCCL_Op unmade_op = -1;
};
constexpr std::size_t kTwoEach[] = {2, 2}, kHuge[] = {SIZE_MAX / 2, SIZE_MAX / 2}, kFarPlaces[] = {0, SIZE_MAX / 2},
                      kEndless[] = {0, std::size_t(1) << 62}, kUneven[] = {1, 3}, kThreeAndFive[] = {3, 5},
                      kOneAndSeven[] = {1, 7}, kZeroAndFive[] = {0, 5};
constexpr int kZeroAndLess[] = {0, -1}, kOutside[] = {0, 2}, kRepeated[] = {1, 1};

constexpr int kAll = -1;
struct WrongCall {
  const char* text;
  GCCL_Result (*call)(Given& g);
  const char* words;  // of the error
  int rank = kAll;    // on which it is wrong
  GCCL_Result due = GCCL_ERR_INVALID_ARGUMENT;
};
// The call's text and the call.
#define CALLED(call) #call, []([[maybe_unused]] Given & g) { return call; }

constexpr WrongCall kWithoutWorld[] = {
    {CALLED(GCCL_Init(nullptr, nullptr)), "world is null"},
    {CALLED(GCCL_Init(&g.world, &g.config)), "struct_bytes"},
    {CALLED(GCCL_Barrier(g.world)), "GCCL_COMM_NULL"},
    {CALLED(GCCL_Init_ranks(&g.world, kZeroAndLess, 0, nullptr)), "n is 0"},
    {CALLED(GCCL_Init_ranks(nullptr, kZeroAndLess, 1, nullptr)), "null"},
    {CALLED(GCCL_Init_ranks(&g.world, nullptr, 1, nullptr)), "null"},
    {CALLED(GCCL_Init_ranks(g.two, kZeroAndLess, 2, nullptr)), "ranks[1] is -1"},
};

constexpr WrongCall kInWorld[] = {
    {CALLED(GCCL_Allreduce(nullptr, g.out, 4, GCCL_FLOAT32, GCCL_SUM, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Allreduce(g.in, nullptr, 4, GCCL_FLOAT32, GCCL_SUM, g.world)), "recvbuf is null"},
    {CALLED(GCCL_Allreduce(g.in, GCCL_IN_PLACE, 4, GCCL_FLOAT32, GCCL_SUM, g.world)), "recvbuf is GCCL_IN_PLACE"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, 77, GCCL_SUM, g.world)), "dtype 77"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, -1, GCCL_SUM, g.world)), "dtype -1"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, 1000, GCCL_SUM, g.world)), "dtype 1000"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, GCCL_FLOAT32, 5, g.world)), "op 5"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, GCCL_FLOAT32, -1, g.world)), "op -1 is unknown"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, GCCL_FLOAT32, INT32_MIN, g.world)), "op -2147483648 is unknown"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, GCCL_FLOAT32, 1000, g.world)), "op 1000"},
    {CALLED(GCCL_Allreduce(g.in, g.out, SIZE_MAX, GCCL_FLOAT32, GCCL_SUM, g.world)), "count is "},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, GCCL_FLOAT32, GCCL_SUM, GCCL_COMM_NULL)), "GCCL_COMM_NULL"},
    {CALLED(GCCL_Iallreduce(g.in, g.out, 4, GCCL_FLOAT32, GCCL_SUM, g.world, nullptr)), "request is null"},
    {CALLED(GCCL_Iallreduce(nullptr, g.out, 4, GCCL_FLOAT32, GCCL_SUM, g.world, &g.request)),
     "allreduce: sendbuf is null"},
    {CALLED(GCCL_Broadcast(nullptr, 4, GCCL_FLOAT32, 0, g.world)), "buf is null"},
    {CALLED(GCCL_Broadcast(GCCL_IN_PLACE, 4, GCCL_FLOAT32, 0, g.world)), "GCCL_IN_PLACE"},
    {CALLED(GCCL_Broadcast(g.out, 4, GCCL_FLOAT32, 2, g.world)), "root is 2"},
    {CALLED(GCCL_Broadcast(g.out, 4, GCCL_FLOAT32, -1, g.world)), "root is -1"},
    {CALLED(GCCL_Reduce(nullptr, g.out, 4, GCCL_FLOAT32, GCCL_SUM, 0, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Reduce(g.in, nullptr, 4, GCCL_FLOAT32, GCCL_SUM, 0, g.world)), "recvbuf is null", 0},
    {CALLED(GCCL_Reduce(GCCL_IN_PLACE, g.out, 4, GCCL_FLOAT32, GCCL_SUM, 0, g.world)), "GCCL_IN_PLACE", 1},
    {CALLED(GCCL_Reduce(g.in, g.out, 4, GCCL_FLOAT32, GCCL_SUM, 9, g.world)), "root is 9"},
    {CALLED(GCCL_Allgather(nullptr, g.out, 4, GCCL_FLOAT32, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Allgather(g.in, nullptr, 4, GCCL_FLOAT32, g.world)), "recvbuf is null"},
    {CALLED(GCCL_Allgather(g.in, GCCL_IN_PLACE, 4, GCCL_FLOAT32, g.world)), "recvbuf is GCCL_IN_PLACE"},
    {CALLED(GCCL_Allgather(g.in, g.out, SIZE_MAX / 8, GCCL_FLOAT32, g.world)), "count is "},
    {CALLED(GCCL_Allgatherv(g.in, g.out, nullptr, nullptr, GCCL_FLOAT32, g.world)), "counts is null"},
    {CALLED(GCCL_Allgatherv(nullptr, g.out, kTwoEach, nullptr, GCCL_FLOAT32, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Allgatherv(g.in, nullptr, kTwoEach, nullptr, GCCL_FLOAT32, g.world)), "recvbuf is null"},
    {CALLED(GCCL_Allgatherv(g.in, g.out, kHuge, nullptr, GCCL_FLOAT32, g.world)), "counts["},
    {CALLED(GCCL_Allgatherv(g.in, g.out, kTwoEach, kFarPlaces, GCCL_FLOAT32, g.world)), "counts[1]"},
    {CALLED(GCCL_Allgatherv(g.in, g.out, kTwoEach, kEndless, GCCL_INT8, g.world)), "counts[1]"},
    {CALLED(GCCL_Reduce_scatter(nullptr, g.out, 4, GCCL_FLOAT32, GCCL_SUM, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Reduce_scatter(g.in, nullptr, 4, GCCL_FLOAT32, GCCL_SUM, g.world)), "recvbuf is null"},
    {CALLED(GCCL_Reduce_scatterv(g.in, g.out, nullptr, GCCL_FLOAT32, GCCL_SUM, g.world)), "counts is null"},
    {CALLED(GCCL_Reduce_scatterv(g.in, g.out, kHuge, GCCL_FLOAT32, GCCL_SUM, g.world)), "counts["},
    {CALLED(GCCL_Alltoall(nullptr, g.out, 4, GCCL_FLOAT32, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Alltoall(g.in, nullptr, 4, GCCL_FLOAT32, g.world)), "recvbuf is null"},
    {CALLED(GCCL_Alltoall(g.in, GCCL_IN_PLACE, 4, GCCL_FLOAT32, g.world)), "recvbuf is GCCL_IN_PLACE"},
    {CALLED(GCCL_Alltoallv(g.in, nullptr, nullptr, g.out, kTwoEach, nullptr, GCCL_FLOAT32, g.world)),
     "sendcounts is null"},
    {CALLED(GCCL_Alltoallv(g.in, kTwoEach, nullptr, g.out, nullptr, nullptr, GCCL_FLOAT32, g.world)),
     "recvcounts is null"},
    {CALLED(GCCL_Alltoallv(g.in, kHuge, nullptr, g.out, kHuge, nullptr, GCCL_FLOAT32, g.world)), "counts["},
    {CALLED(GCCL_Alltoallv(g.in, kTwoEach, kFarPlaces, g.out, kTwoEach, nullptr, GCCL_FLOAT32, g.world)),
     "sendcounts[1]"},
    {CALLED(GCCL_Alltoallv(g.in, kUneven, nullptr, g.out, kTwoEach, nullptr, GCCL_FLOAT32, g.world)), "sends itself"},
    {CALLED(GCCL_Alltoallv(g.out, kTwoEach, kThreeAndFive, g.out, kTwoEach, kZeroAndFive, GCCL_FLOAT32, g.world)),
     "the block for rank 1 (elements 5 to 6) overlaps the one from rank 1 (elements 5 to 6)"},
    {CALLED(GCCL_Alltoallv(g.out, kTwoEach, kOneAndSeven, g.out, kTwoEach, kZeroAndFive, GCCL_FLOAT32, g.world)),
     "the block for rank 0 (elements 1 to 2) overlaps the one from rank 0 (elements 0 to 1)"},
    {CALLED(GCCL_Scatter(nullptr, g.out, 4, GCCL_FLOAT32, 0, g.world)), "sendbuf is null", 0},
    {CALLED(GCCL_Scatter(g.in, nullptr, 4, GCCL_FLOAT32, 0, g.world)), "recvbuf is null"},
    {CALLED(GCCL_Scatter(g.in, g.out, 4, GCCL_FLOAT32, 2, g.world)), "root is 2"},
    {CALLED(GCCL_Gather(nullptr, g.out, 4, GCCL_FLOAT32, 0, g.world)), "sendbuf is null"},
    {CALLED(GCCL_Gather(g.in, nullptr, 4, GCCL_FLOAT32, 0, g.world)), "recvbuf is null", 0},
    {CALLED(GCCL_Gather(g.in, g.out, 4, GCCL_FLOAT32, -2, g.world)), "root is -2"},
    {CALLED(GCCL_Barrier(GCCL_COMM_NULL)), "GCCL_COMM_NULL"},
    {CALLED(GCCL_Ibarrier(g.world, nullptr)), "request is null"},
    {CALLED(GCCL_Send(nullptr, 4, GCCL_FLOAT32, 1, g.world)), "buf is null"},
    {CALLED(GCCL_Send(g.in, 4, GCCL_FLOAT32, 2, g.world)), "dest is 2"},
    {CALLED(GCCL_Send(g.in, 4, GCCL_FLOAT32, -1, g.world)), "dest is -1"},
    {CALLED(GCCL_Recv(nullptr, 4, GCCL_FLOAT32, 1, g.world)), "buf is null"},
    {CALLED(GCCL_Recv(g.out, 4, GCCL_FLOAT32, 2, g.world)), "source is 2"},
    {CALLED(GCCL_Recv(g.out, 4, 50, 1, g.world)), "dtype 50"},
    {CALLED(GCCL_Isend(g.in, 4, GCCL_FLOAT32, 1, g.world, nullptr)), "request is null"},
    {CALLED(GCCL_Wait(nullptr)), "request is null"},
    {CALLED(GCCL_Waitall(-1, &g.request)), "n is -1"},
    {CALLED(GCCL_Waitall(1, nullptr)), "requests is null"},
    {CALLED(GCCL_Test(nullptr, &g.done)), "request is null"},
    {CALLED(GCCL_Test(&g.request, nullptr)), "done is null"},
    {CALLED(GCCL_On_complete(
         g.request, [](GCCL_Result, void*) {}, nullptr)),
     "GCCL_REQUEST_NULL"},
    {CALLED(GCCL_Request_free(nullptr)), "request is null"},
    {CALLED(GCCL_Group_end()), "", kAll, GCCL_ERR_INVALID_USAGE},
    {CALLED(GCCL_Comm_rank(g.world, nullptr)), "rank is null"},
    {CALLED(GCCL_Comm_size(g.world, nullptr)), "size is null"},
    {CALLED(GCCL_Comm_nodes(g.world, nullptr)), "nodes is null"},
    {CALLED(GCCL_Comm_split(g.world, -2, 0, &g.comm)), "color is -2"},
    {CALLED(GCCL_Comm_split(g.world, 0, 0, nullptr)), "out is null"},
    {CALLED(GCCL_Comm_create(g.world, kOutside, 2, &g.comm)), "ranks[1] is 2"},
    {CALLED(GCCL_Comm_create(g.world, kRepeated, 2, &g.comm)), "ranks[1] repeats"},
    {CALLED(GCCL_Comm_create(g.world, nullptr, 2, &g.comm)), "ranks is null"},
    {CALLED(GCCL_Comm_create(g.world, kOutside, -1, &g.comm)), "n is -1"},
    {CALLED(GCCL_Comm_free(nullptr)), "comm is null"},
    {CALLED(GCCL_Comm_free(&g.comm)), "GCCL_COMM_NULL"},
    {CALLED(GCCL_Comm_set_timeout(g.world, -2)), "timeout_ms is -2"},
    {CALLED(GCCL_Get_performance_metrics(g.world, nullptr)), "metrics is null"},
    {CALLED(GCCL_Get_performance_metrics(g.world, &g.metrics)), "struct_bytes"},
    {CALLED(GCCL_Get_performance_metrics(g.world, &g.short_metrics)), "struct_bytes"},
    {CALLED(GCCL_Type_create(0, &g.unmade)), "0 bytes"},
    {CALLED(GCCL_Type_create(65537, &g.unmade)), "65537 bytes"},
    {CALLED(GCCL_Type_create(8, nullptr)), "dtype is null"},
    {CALLED(GCCL_Type_free(&g.unmade)), "never created"},
    {CALLED(GCCL_Op_create(nullptr, nullptr, &g.unmade_op)), "function is null"},
    {CALLED(GCCL_Op_free(&g.unmade_op)), "never created"},
};

constexpr WrongCall kWithOwnTypes[] = {
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, g.made, GCCL_SUM, g.world)), "GCCL_Op_create"},
    {CALLED(GCCL_Allreduce(g.in, g.out, 4, g.freed, GCCL_SUM, g.world)), "freed"},
};

void expect_errors(std::span<const WrongCall> calls, int rank, Given& g) {
  for (const WrongCall& c : calls) {
    if (c.rank != kAll && c.rank != rank) continue;
    expect(c.call(g), c.due, c.text);
    expect_text(c.words, c.text);
    if (g.request != GCCL_REQUEST_NULL) return report(std::string(c.text) + " has made a request");
  }
}

TEST_CASE("every wrong argument is an error that says which, and leaves the communicator usable") {
  check({.size = 2, .backends = "shm"}, [](int rank) {
    Given g;
    g.config.struct_bytes = 3;
    expect_errors(kWithoutWorld, rank, g);
    RANK_SUCCESS(GCCL_Init(&g.world, nullptr));
    // Repeated small calls take a short way: wrong ones among them must not.
    for (int i = 0; i < 3; ++i) {
      RANK_SUCCESS(GCCL_Allreduce(g.in, g.out, 4, GCCL_FLOAT32, GCCL_SUM, g.world));
      RANK_SUCCESS(GCCL_Broadcast(g.out, 4, GCCL_FLOAT32, 0, g.world));
      RANK_SUCCESS(GCCL_Allgather(g.in, g.out, 4, GCCL_FLOAT32, g.world));
      RANK_SUCCESS(GCCL_Alltoall(g.in, g.out, 4, GCCL_FLOAT32, g.world));
    }
    g.short_metrics.struct_bytes = 32;
    expect_errors(kInWorld, rank, g);
    RANK_SUCCESS(GCCL_Type_create(8, &g.made));
    RANK_SUCCESS(GCCL_Type_create(8, &g.freed));
    GCCL_Dtype copy = g.freed;
    RANK_SUCCESS(GCCL_Type_free(&copy));
    expect_errors(kWithOwnTypes, rank, g);
    // What looks like these and is right.
    RANK_SUCCESS(GCCL_Test(&g.request, &g.done));
    RANK_CHECK(g.done == 1);
    RANK_SUCCESS(GCCL_Wait(&g.request));
    RANK_SUCCESS(GCCL_Type_free(&g.made));
    // Nothing of all that has been sent.
    float one = 1, sum = 0;
    RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, g.world));
    RANK_CHECK(sum == 2);
    RANK_SUCCESS(GCCL_Comm_free(&g.world));
    RANK_CHECK(g.world == GCCL_COMM_NULL);
    RANK_SUCCESS(GCCL_Finalize());
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("an I-form that is refused leaves no request to wait for") {
  check({.size = 2}, [](int) {
    GCCL_Comm world = begin();
    int x = 0;
    const auto refused = [](auto call) {
      auto request = reinterpret_cast<GCCL_Request>(&call);  // whatever a program's memory holds
      RANK_CHECK(call(&request) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_CHECK(request == GCCL_REQUEST_NULL);
      RANK_SUCCESS(GCCL_Waitall(1, &request));
    };
    const GCCL_Comm none = GCCL_COMM_NULL;
    const std::size_t* const counts = nullptr;
    refused([&](GCCL_Request* r) { return GCCL_Isend(&x, 1, GCCL_INT32, 99, world, r); });
    refused([&](GCCL_Request* r) { return GCCL_Iallreduce(&x, nullptr, 1, GCCL_INT32, GCCL_SUM, world, r); });
    refused([&](GCCL_Request* r) { return GCCL_Isend(&x, 1, GCCL_INT32, 0, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Irecv(&x, 1, GCCL_INT32, 0, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Ibroadcast(&x, 1, GCCL_INT32, 0, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Ireduce(&x, &x, 1, GCCL_INT32, GCCL_SUM, 0, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Iallreduce(&x, &x, 1, GCCL_INT32, GCCL_SUM, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Iallgather(&x, &x, 1, GCCL_INT32, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Iallgatherv(&x, &x, counts, counts, GCCL_INT32, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Ireduce_scatter(&x, &x, 1, GCCL_INT32, GCCL_SUM, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Ireduce_scatterv(&x, &x, counts, GCCL_INT32, GCCL_SUM, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Ialltoall(&x, &x, 1, GCCL_INT32, none, r); });
    refused(
        [&](GCCL_Request* r) { return GCCL_Ialltoallv(&x, counts, counts, &x, counts, counts, GCCL_INT32, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Iscatter(&x, &x, 1, GCCL_INT32, 0, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Igather(&x, &x, 1, GCCL_INT32, 0, none, r); });
    refused([&](GCCL_Request* r) { return GCCL_Ibarrier(none, r); });
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("what makes a communicator and is refused leaves none") {
  check({.size = 1}, [](int) {
    const GCCL_Comm none = GCCL_COMM_NULL;
    const auto refused = [](auto call) {
      auto out = reinterpret_cast<GCCL_Comm>(&call);  // whatever a program's memory holds
      RANK_CHECK(call(&out) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_CHECK(out == GCCL_COMM_NULL);
    };
    const int zero = 0;
    refused([&](GCCL_Comm* out) { return GCCL_Comm_split(none, 0, 0, out); });
    refused([&](GCCL_Comm* out) { return GCCL_Comm_create(none, &zero, 1, out); });
    refused([&](GCCL_Comm* out) { return GCCL_Comm_shrink(none, out); });
    refused([&](GCCL_Comm* out) { return GCCL_Comm_grow(none, 1, 0, out); });
    refused([&](GCCL_Comm* out) { return GCCL_Init_ranks(out, nullptr, 1, nullptr); });
    const int negative[] = {0, -1, 2};
    GCCL_Comm worlds[3];
    std::fill(std::begin(worlds), std::end(worlds), reinterpret_cast<GCCL_Comm>(&worlds));
    RANK_CHECK(GCCL_Init_ranks(worlds, negative, 3, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
    for (const GCCL_Comm w : worlds) RANK_CHECK(w == GCCL_COMM_NULL);
  });
}

TEST_CASE("what is freed or finalized with operations in flight says so, and requests may be waited for afterwards") {
  for (const Job& job : {Job{.size = 2, .backends = "shm"}, Job{.size = 2, .backends = "tcp"}})
    check(job, [](int) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      int x = 0, me = 0;
      RANK_SUCCESS(GCCL_Comm_rank(world, &me));
      GCCL_Request request = GCCL_REQUEST_NULL, other = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, 1 - me, c, &request));
      RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, me, c, &other));
      expect(GCCL_Comm_free(&c), GCCL_ERR_INVALID_USAGE, "free");
      expect_text("in flight", "free");
      RANK_CHECK(c != GCCL_COMM_NULL);
      expect(GCCL_Finalize(), GCCL_ERR_INVALID_USAGE, "finalize");
      // Whichever rank frees it first ends the other's operation, too.
      const GCCL_Result waited = GCCL_Wait(&request);
      RANK_CHECK(waited == GCCL_ERR_INVALID_USAGE || waited == GCCL_ERR_REMOTE);
      expect_text(waited == GCCL_ERR_REMOTE ? "freed the communicator" : "the communicator was freed", "wait");
      RANK_SUCCESS(GCCL_Request_free(&other));
    });
}

// Reads memory that is freed, which sanitizers tell in their own way.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr WrongCall kFreed[] = {
    {CALLED(GCCL_Allreduce(GCCL_IN_PLACE, g.out, 1, GCCL_INT32, GCCL_SUM, g.comm)), "was freed"},
    {CALLED(GCCL_Comm_free(&g.comm)), "was freed"},
};
constexpr WrongCall kFinalized[] = {{CALLED(GCCL_Barrier(g.world)), "was freed"}};

TEST_CASE("a copy of a handle that was freed is no communicator") {
  for (const Job& job : {Job{.size = 2, .backends = "shm"}, Job{.size = 2, .backends = "tcp"}})
    check(job, [](int rank) {
      Given g;
      g.world = begin();
      RANK_SUCCESS(GCCL_Comm_split(g.world, 0, 0, &g.comm));
      GCCL_Comm copy = g.comm;
      RANK_SUCCESS(GCCL_Comm_free(&copy));
      expect_errors(kFreed, rank, g);
      RANK_SUCCESS(GCCL_Finalize());
      expect_errors(kFinalized, rank, g);
    });
}
#endif

}  // namespace
