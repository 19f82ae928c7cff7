// GCCL_On_complete where many functions are due at once, or one begins the next operation: no stack grows, no call
// waits for all of them.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Functions that are due when a function tests a request run inside of it, some deep: the stack is no list.
TEST_CASE("functions that test requests run, however many are due at once") {
  check({.size = 1}, [](int) {
    constexpr int kMany = 30000;
    static int ran, depth, deepest;
    static GCCL_Request never;
    GCCL_Comm world = GCCL_COMM_NULL, other = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &other));
    int late = 0;
    RANK_SUCCESS(GCCL_Irecv(&late, 1, GCCL_INT32, 0, other, &never));
    std::vector<int> in(kMany, 1), out(kMany);
    std::vector<GCCL_Request> received(kMany, GCCL_REQUEST_NULL), sent(kMany, GCCL_REQUEST_NULL);
    for (int i = 0; i < kMany; ++i) {
      RANK_SUCCESS(GCCL_Irecv(&out[i], 1, GCCL_INT32, 0, world, &received[i]));
      RANK_SUCCESS(GCCL_On_complete(
          received[i],
          [](GCCL_Result, void*) {
            ++ran;
            deepest = std::max(deepest, ++depth);
            int done = 0;
            RANK_SUCCESS(GCCL_Test(&never, &done));
            --depth;
          },
          nullptr));
    }
    for (int i = 0; i < kMany; ++i) RANK_SUCCESS(GCCL_Isend(&in[i], 1, GCCL_INT32, 0, world, &sent[i]));
    RANK_SUCCESS(GCCL_Waitall(kMany, received.data()));
    RANK_SUCCESS(GCCL_Waitall(kMany, sent.data()));
    RANK_CHECK(ran == kMany);
    RANK_CHECK(deepest > 1);
    RANK_CHECK(deepest < 100);
    RANK_SUCCESS(GCCL_Send(&late, 1, GCCL_INT32, 0, other));
    RANK_SUCCESS(GCCL_Wait(&never));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// Each gives up the request of the next, which then is due: nobody waits for a function that only this thread can run.
TEST_CASE("functions give up requests whose functions are due, in a long row") {
  check({.size = 1}, [](int) {
    constexpr int kMany = 40;
    static int ran;
    static std::vector<GCCL_Request> received(kMany, GCCL_REQUEST_NULL);
    GCCL_Comm world = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    std::vector<int> in(kMany, 1), out(kMany);
    for (int i = 0; i < kMany; ++i) {
      RANK_SUCCESS(GCCL_Irecv(&out[i], 1, GCCL_INT32, 0, world, &received[i]));
      RANK_SUCCESS(GCCL_On_complete(
          received[i],
          [](GCCL_Result, void*) {
            if (const int next = ++ran; next < kMany && received[next])
              RANK_SUCCESS(GCCL_Request_free(&received[next]));
          },
          nullptr));
    }
    GCCL_Group_start();
    for (int i = 0; i < kMany; ++i) GCCL_Send(&in[i], 1, GCCL_INT32, 0, world);
    RANK_SUCCESS(GCCL_Group_end());
    RANK_SUCCESS(GCCL_Wait(&received[0]));
    while (ran < kMany) RANK_SUCCESS(GCCL_Progress());
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// Operations that begin one another until something is over, or so many have ended.
struct Row {
  int most;
  GCCL_Comm comm = GCCL_COMM_NULL;
  float one = 1, sum = 0;
  bool over = false;
  int ran = 0;

  static void next(GCCL_Result result, void* context) {
    auto& row = *static_cast<Row*>(context);
    RANK_SUCCESS(result);
    if (row.over || ++row.ran == row.most) return;
    GCCL_Request request = GCCL_REQUEST_NULL;
    RANK_SUCCESS(GCCL_Iallreduce(&row.one, &row.sum, 1, GCCL_FLOAT32, GCCL_SUM, row.comm, &request));
    RANK_SUCCESS(GCCL_On_complete(request, next, context));
    RANK_SUCCESS(GCCL_Request_free(&request));
  }
};

// On one rank each operation has ended when it is given up, so its function is due. A stack of 8 MiB has room for some
// 50,000 of them inside one another.
TEST_CASE("a function may start the next operation and give it up, in a row of any length") {
  check({.size = 1}, [](int) {
    static Row row{.most = 300000};
    RANK_SUCCESS(GCCL_Init(&row.comm, nullptr));
    Row::next(GCCL_SUCCESS, &row);
    while (row.ran < row.most) RANK_SUCCESS(GCCL_Progress());
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("functions that start operations without end hold up no call") {
  check({.size = 1}, [](int) {
    static Row endless{.most = 1000000};
    GCCL_Comm world = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &endless.comm));
    int late = 0, done = 0;
    GCCL_Request never = GCCL_REQUEST_NULL;
    RANK_SUCCESS(GCCL_Irecv(&late, 1, GCCL_INT32, 0, world, &never));
    Row::next(GCCL_SUCCESS, &endless);
    RANK_SUCCESS(GCCL_Progress());
    RANK_SUCCESS(GCCL_Test(&never, &done));
    RANK_CHECK(!done);
    RANK_CHECK(GCCL_Wait_for(&never, 20) == GCCL_IN_PROGRESS);
    RANK_SUCCESS(GCCL_Send(&late, 1, GCCL_INT32, 0, world));
    RANK_SUCCESS(GCCL_Wait(&never));
    RANK_CHECK(endless.ran < endless.most);
    endless.over = true;
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// The progress thread runs the function that begins the next operation, or is about to. It uses another communicator,
// too, which is freed first.
TEST_CASE("GCCL_Finalize ends functions that begin one another in another thread") {
  check({.size = 1, .environment = {{"GCCL_PROGRESS_THREAD", "1"}}}, [](int) {
    struct Endless {
      GCCL_Comm world = GCCL_COMM_NULL, other = GCCL_COMM_NULL;
      std::atomic<int> ran{0};
      static bool begins(GCCL_Comm comm, GCCL_Request* request) {
        const GCCL_Result result = GCCL_Ibarrier(comm, request);
        RANK_CHECK((result == GCCL_SUCCESS || result == GCCL_ERR_INVALID_USAGE));  // it is there
        return result == GCCL_SUCCESS;
      }
      static void next(GCCL_Result result, void* context) {
        auto& e = *static_cast<Endless*>(context);
        ++e.ran;
        if (result != GCCL_SUCCESS) return;
        GCCL_Request request = GCCL_REQUEST_NULL;
        if (begins(e.other, &request)) RANK_SUCCESS(GCCL_Request_free(&request));
        if (!begins(e.world, &request)) return;
        RANK_SUCCESS(GCCL_On_complete(request, next, context));
        RANK_SUCCESS(GCCL_Request_free(&request));
      }
    };
    for (int round = 0; round < 100; ++round) {
      Endless row;
      RANK_SUCCESS(GCCL_Init(&row.world, nullptr));
      RANK_SUCCESS(GCCL_Comm_split(row.world, 0, 0, &row.other));
      Endless::next(GCCL_SUCCESS, &row);
      while (row.ran < 10 * (round % 10)) usleep(10);
      const GCCL_Result result = GCCL_Finalize();  // where the last operation was in flight, that is the error
      RANK_CHECK(result == GCCL_SUCCESS || says("in flight"));
      const int ran = row.ran;
      RANK_SUCCESS(GCCL_Progress());
      RANK_CHECK(row.ran == ran);
    }
  });
}

TEST_CASE("a wait's limit holds while other operations go on completing") {
  check({.size = 2, .backends = "shm"}, [](int rank) {
    struct Answers {
      GCCL_Comm world = GCCL_COMM_NULL;
      std::int64_t in = 1, out = 1;
      bool over = false;
      int left = 3000000;  // some seconds

      void start() {
        GCCL_Request request = GCCL_REQUEST_NULL;
        RANK_SUCCESS(GCCL_Irecv(&in, 1, GCCL_INT64, 1, world, &request));
        RANK_SUCCESS(GCCL_On_complete(request, next, this));
        RANK_SUCCESS(GCCL_Request_free(&request));
        RANK_SUCCESS(GCCL_Isend(&out, 1, GCCL_INT64, 1, world, &request));
        RANK_SUCCESS(GCCL_Request_free(&request));
      }
      static void next(GCCL_Result result, void* context) {
        auto& a = *static_cast<Answers*>(context);
        RANK_SUCCESS(result);
        if (a.out == 0) {
          a.over = true;
          return;
        }
        if (--a.left == 0) a.out = 0;
        a.start();
      }
    };
    static Answers answers;
    GCCL_Comm world = answers.world = begin();
    if (rank == 1) {
      std::int64_t x = 1;
      while (x != 0) {
        RANK_SUCCESS(GCCL_Recv(&x, 1, GCCL_INT64, 0, world));
        RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_INT64, 0, world));
      }
    } else {
      int late = 0;
      GCCL_Request never = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Irecv(&late, 1, GCCL_INT32, 0, world, &never));
      answers.start();
      RANK_CHECK(GCCL_Wait_for(&never, 20) == GCCL_IN_PROGRESS);
      RANK_CHECK(answers.left > 0);
      answers.left = std::min(answers.left, 1);
      while (!answers.over) RANK_SUCCESS(GCCL_Progress());
      RANK_SUCCESS(GCCL_Send(&late, 1, GCCL_INT32, 0, world));
      RANK_SUCCESS(GCCL_Wait(&never));
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
}

}  // namespace
