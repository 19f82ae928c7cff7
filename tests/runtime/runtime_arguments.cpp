// Wrong arguments of every function, and calls at the wrong time: an error that says which, and the communicator goes
// on.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

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
      expect(GCCL_Wait(&request), GCCL_ERR_INVALID_USAGE, "wait");
      RANK_SUCCESS(GCCL_Request_free(&other));
    });
}

// Reads memory that is freed, which sanitizers tell in their own way.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a copy of a handle that was freed is no communicator") {
  for (const Job& job : {Job{.size = 2, .backends = "shm"}, Job{.size = 2, .backends = "tcp"}})
    check(job, [](int) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      GCCL_Comm freed = c;
      RANK_SUCCESS(GCCL_Comm_free(&c));
      int x = 0;
      WRONG(GCCL_Allreduce(GCCL_IN_PLACE, &x, 1, GCCL_INT32, GCCL_SUM, freed), "was freed");
      WRONG(GCCL_Comm_free(&freed), "was freed");
      RANK_SUCCESS(GCCL_Finalize());
      WRONG(GCCL_Barrier(world), "was freed");
    });
}
#endif

}  // namespace
