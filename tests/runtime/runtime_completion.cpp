// GCCL_On_complete: a request is complete once its functions have returned, whichever thread runs them; only a function
// itself does not wait for its own end.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// A function that takes its time. Lives on the heap, so that memory checkers see a function that comes too late.
struct Slow {
  std::atomic<int> entered{0}, returned{0};
  std::atomic<int> result{-1};
  static void run(GCCL_Result result, void* context) {
    auto& s = *static_cast<Slow*>(context);
    ++s.entered;
    usleep(150000);
    s.result = int(result);
    ++s.returned;
  }
};

// Waits until another thread is inside the function.
void await_entry(const Slow& s) {
  for (int i = 0; i < 60000 && s.entered == 0; ++i) usleep(1000);
  RANK_CHECK(s.entered == 1);
}

struct Way {
  const char* name;
  std::function<void(GCCL_Comm* comm, GCCL_Request* request)> end;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"wait", [](GCCL_Comm*, GCCL_Request* r) { RANK_SUCCESS(GCCL_Wait(r)); }},
      {"wait_for",
       [](GCCL_Comm*, GCCL_Request* r) {
         GCCL_Result result;
         while ((result = GCCL_Wait_for(r, 5)) == GCCL_IN_PROGRESS) RANK_CHECK(*r != GCCL_REQUEST_NULL);
         RANK_SUCCESS(result);
       }},
      {"waitall", [](GCCL_Comm*, GCCL_Request* r) { RANK_SUCCESS(GCCL_Waitall(1, r)); }},
      {"test",
       [](GCCL_Comm*, GCCL_Request* r) {
         for (int done = 0; !done;) RANK_SUCCESS(GCCL_Test(r, &done));
       }},
      {"request_free", [](GCCL_Comm*, GCCL_Request* r) { RANK_SUCCESS(GCCL_Request_free(r)); }},
      {"comm_free",
       [](GCCL_Comm* c, GCCL_Request* r) {
         RANK_SUCCESS(GCCL_Comm_free(c));
         RANK_SUCCESS(GCCL_Wait(r));
       }},
      {"comm_free, given up", [](GCCL_Comm* c, GCCL_Request*) { RANK_SUCCESS(GCCL_Comm_free(c)); }},
      {"request_abort", [](GCCL_Comm*, GCCL_Request* r) { RANK_SUCCESS(GCCL_Request_abort(r, 1)); }},
  };
  return all;
}

void every_way(const Job& job, bool own_thread) {
  check(job, [&](int) {
    GCCL_Comm world = begin();
    std::atomic<bool> stop{false};
    std::thread progress;
    if (own_thread)
      progress = std::thread([&] {
        while (!stop) RANK_SUCCESS(GCCL_Progress());
      });
    for (const Way& way : ways()) {
      GCCL_Comm c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      GCCL_Request request = GCCL_REQUEST_NULL;
      auto slow = std::make_unique<Slow>();
      RANK_SUCCESS(GCCL_Ibarrier(c, &request));
      RANK_SUCCESS(GCCL_On_complete(request, Slow::run, slow.get()));
      if (std::string(way.name) == "comm_free, given up") {
        RANK_SUCCESS(GCCL_Request_free(&request));
      }
      await_entry(*slow);
      way.end(&c, &request);
      if (slow->returned != 1) report(std::string(way.name) + " returned before the function");
      RANK_CHECK(slow->result == GCCL_SUCCESS);
      slow.reset();
      if (c) RANK_SUCCESS(GCCL_Comm_free(&c));
    }
    auto last = std::make_unique<Slow>();
    GCCL_Request request = GCCL_REQUEST_NULL;
    RANK_SUCCESS(GCCL_Ibarrier(world, &request));
    RANK_SUCCESS(GCCL_On_complete(request, Slow::run, last.get()));
    await_entry(*last);
    RANK_SUCCESS(GCCL_Finalize());
    RANK_CHECK(last->returned == 1);
    last.reset();
    RANK_SUCCESS(GCCL_Wait(&request));
    stop = true;
    if (progress.joinable()) progress.join();
  });
}

TEST_CASE("a wait, test or free returns after the function that the progress thread runs") {
  for (const char* backends : {"shm", "tcp"})
    every_way({.size = 2, .backends = backends, .environment = {{"GCCL_PROGRESS_THREAD", "1"}}}, false);
}

TEST_CASE("a wait, test or free returns after the function that another thread of the program runs") {
  every_way({.size = 2, .backends = "shm"}, true);
}

TEST_CASE("functions of a broken communicator have returned, with its error, when the wait returns") {
  check({.size = 2, .backends = "shm", .environment = {{"GCCL_PROGRESS_THREAD", "1"}}}, [](int rank) {
    GCCL_Comm world = begin();
    int x = 0;
    GCCL_Request request = GCCL_REQUEST_NULL;
    auto slow = std::make_unique<Slow>();
    RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, 1 - rank, world, &request));
    RANK_SUCCESS(GCCL_On_complete(request, Slow::run, slow.get()));
    RANK_SUCCESS(GCCL_Abort(world, 3));
    RANK_CHECK(GCCL_Wait(&request) == GCCL_ERR_ABORTED);
    RANK_CHECK(slow->returned == 1);
    RANK_CHECK(slow->result == GCCL_ERR_ABORTED);
    slow.reset();
    GCCL_Finalize();
  });
}

// What a function does from inside.
struct Inside {
  GCCL_Comm comm;
  GCCL_Request request = GCCL_REQUEST_NULL;
  std::function<void(Inside&)> act;
  int times = 0;
  std::atomic<bool> finished{false};
  static void run(GCCL_Result, void* context) {
    auto& i = *static_cast<Inside*>(context);
    ++i.times;
    i.act(i);
    if (i.request == GCCL_REQUEST_NULL) i.finished = true;
  }
};

TEST_CASE("inside a function its own request is complete, and communicators stay") {
  for (const bool threaded : {false, true})
    check({.size = 2, .backends = "shm", .environment = {{"GCCL_PROGRESS_THREAD", threaded ? "1" : "0"}}}, [](int) {
      GCCL_Comm world = begin();
      const std::function<void(Inside&)> acts[] = {
          [](Inside& i) { RANK_SUCCESS(GCCL_Wait(&i.request)); },
          [](Inside& i) {
            int done = 0;
            RANK_SUCCESS(GCCL_Test(&i.request, &done));
            RANK_CHECK(done == 1);
          },
          [](Inside& i) { RANK_SUCCESS(GCCL_Request_free(&i.request)); },
          [](Inside& i) {
            RANK_CHECK(GCCL_Comm_free(&i.comm) == GCCL_ERR_INVALID_USAGE);
            RANK_CHECK(std::string(GCCL_Last_error()).find("GCCL_On_complete") != std::string::npos);
            RANK_CHECK(GCCL_Finalize() == GCCL_ERR_INVALID_USAGE);
            RANK_SUCCESS(GCCL_Request_free(&i.request));
          },
          [](Inside& i) {
            // Another one for the same request: it runs before the request is complete.
            if (i.times == 1) RANK_SUCCESS(GCCL_On_complete(i.request, Inside::run, &i));
            if (i.times == 2) RANK_SUCCESS(GCCL_Request_free(&i.request));
          },
      };
      for (const auto& act : acts) {
        auto inside = std::make_unique<Inside>();
        inside->comm = world;
        inside->act = act;
        RANK_SUCCESS(GCCL_Ibarrier(world, &inside->request));
        RANK_SUCCESS(GCCL_On_complete(inside->request, Inside::run, inside.get()));
        for (int i = 0; i < 60000 && !inside->finished; ++i) {
          RANK_SUCCESS(GCCL_Progress());
          usleep(100);
        }
        RANK_CHECK(inside->finished);
        for (int i = 0; i < 100; ++i) RANK_SUCCESS(GCCL_Barrier(world));
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// In a thread of the library's or in one of the program's. The function uses another communicator than its request's,
// and waits for a request that has a function as well.
TEST_CASE("GCCL_Finalize frees nothing while another thread is inside a function") {
  for (const bool threaded : {false, true})
    check({.size = 2, .environment = {{"GCCL_PROGRESS_THREAD", threaded ? "1" : "0"}}}, [&](int) {
      static GCCL_Comm world, other;
      static std::atomic<bool> entered, finalizing, go_on, returned, inner;
      entered = finalizing = go_on = returned = inner = false;
      world = begin();
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &other));
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Ibarrier(world, &request));
      RANK_SUCCESS(GCCL_On_complete(
          request,
          [](GCCL_Result, void*) {
            entered = true;
            while (!go_on) usleep(1000);
            GCCL_Request more = GCCL_REQUEST_NULL;
            RANK_SUCCESS(GCCL_Ibarrier(other, &more));
            RANK_SUCCESS(GCCL_On_complete(
                more, [](GCCL_Result, void*) { inner = true; }, nullptr));
            while (!inner) usleep(1000);  // which GCCL_Finalize has to bring about
            int done = 0;
            while (!done) RANK_SUCCESS(GCCL_Test(&more, &done));
            returned = true;
          },
          nullptr));
      std::thread progress;
      if (!threaded)
        progress = std::thread([] {
          while (!entered) RANK_SUCCESS(GCCL_Progress());
        });
      while (!entered) usleep(1000);
      std::thread lets([] {
        while (!finalizing) usleep(1000);
        usleep(50000);  // so that it is most likely waiting
        go_on = true;
      });
      finalizing = true;
      RANK_SUCCESS(GCCL_Finalize());
      RANK_CHECK(returned);
      RANK_SUCCESS(GCCL_Wait(&request));
      lets.join();
      if (progress.joinable()) progress.join();
    });
}

TEST_CASE("functions of operations that GCCL_Finalize drops find all communicators") {
  check({.size = 1}, [](int) {
    static GCCL_Comm world, before, other;
    static std::atomic<int> ran;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &before));
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &other));
    int x = 0;
    std::vector<GCCL_Request> requests;
    for (GCCL_Comm c : {world, before, other}) {
      GCCL_Request& request = requests.emplace_back(GCCL_REQUEST_NULL);
      RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, 0, c, &request));
      RANK_SUCCESS(GCCL_On_complete(
          request,
          [](GCCL_Result result, void*) {
            ++ran;
            RANK_CHECK(result == GCCL_ERR_INVALID_USAGE);
            for (GCCL_Comm other_one : {world, before, other}) {
              int size = 0;
              RANK_SUCCESS(GCCL_Comm_size(other_one, &size));
              GCCL_Request more = GCCL_REQUEST_NULL;
              RANK_CHECK(GCCL_Ibarrier(other_one, &more) == GCCL_ERR_INVALID_USAGE);
            }
          },
          nullptr));
    }
    RANK_CHECK(GCCL_Finalize() == GCCL_ERR_INVALID_USAGE);
    RANK_CHECK(ran == 3);
    for (GCCL_Request& request : requests) RANK_CHECK(GCCL_Wait(&request) == GCCL_ERR_INVALID_USAGE);
  });
}

TEST_CASE("a function for a request that outlives its communicator runs before the wait returns") {
  check({.size = 2, .backends = "shm"}, [](int) {
    GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
    for (const bool dropped : {false, true}) {
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      float a = 1, b = 0;
      GCCL_Request request = GCCL_REQUEST_NULL, other = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Iallreduce(&a, &b, 1, GCCL_FLOAT32, GCCL_SUM, c, &request));
      RANK_SUCCESS(GCCL_Ibarrier(c, &other));
      RANK_SUCCESS(GCCL_Wait(&other));  // so the one before has ended
      RANK_SUCCESS(GCCL_Comm_free(&c));
      auto slow = std::make_unique<Slow>();
      RANK_SUCCESS(GCCL_On_complete(request, Slow::run, slow.get()));
      RANK_CHECK(slow->entered == 0);
      if (dropped) {
        RANK_SUCCESS(GCCL_Request_free(&request));
      } else {
        RANK_SUCCESS(GCCL_Wait(&request));
      }
      RANK_CHECK(slow->returned == 1);
      RANK_CHECK(slow->result == GCCL_SUCCESS);
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("an exception of a function is the request's error") {
  for (const bool threaded : {false, true})
    check({.size = 2, .backends = "shm", .environment = {{"GCCL_PROGRESS_THREAD", threaded ? "1" : "0"}}}, [](int) {
      GCCL_Comm world = begin();
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Ibarrier(world, &request));
      int later = 0;
      RANK_SUCCESS(GCCL_On_complete(
          request, [](GCCL_Result, void*) { throw std::runtime_error("of the program's own"); }, nullptr));
      RANK_SUCCESS(GCCL_On_complete(
          request, [](GCCL_Result, void* l) { *static_cast<int*>(l) = 1; }, &later));
      RANK_CHECK(GCCL_Wait(&request) == GCCL_ERR_INVALID_USAGE);
      RANK_CHECK(std::string(GCCL_Last_error()).find("of the program's own") != std::string::npos);
      RANK_CHECK(later == 1);
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// Each rank's thread is in a group when it runs the function: in GCCL_Wait.
TEST_CASE("calls that a function makes are none of the group of the thread that runs it") {
  check({.size = 2}, [](int rank) {
    static GCCL_Comm world, self;
    static int depth, sent;
    static GCCL_Result refused;
    world = begin();
    RANK_SUCCESS(GCCL_Comm_split(world, rank, 0, &self));
    GCCL_Request request = GCCL_REQUEST_NULL;
    RANK_SUCCESS(GCCL_Ibarrier(world, &request));
    depth = -1;
    RANK_SUCCESS(GCCL_On_complete(
        request,
        [](GCCL_Result, void*) {
          depth = GCCL_Group_depth();
          float x = 0;
          refused = GCCL_Allreduce(&x, &x, 1, GCCL_Dtype(77), GCCL_SUM, world);
          RANK_SUCCESS(GCCL_Group_start());
          RANK_SUCCESS(GCCL_Send(&sent, 1, GCCL_INT32, 0, self));  // and no end: given up
        },
        nullptr));
    RANK_SUCCESS(GCCL_Group_start());
    int sum = rank, got = 0;
    RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &sum, 1, GCCL_INT32, GCCL_SUM, world));
    sent = 7;
    RANK_SUCCESS(GCCL_Wait(&request));
    RANK_CHECK(depth == 0);
    RANK_CHECK(refused == GCCL_ERR_INVALID_ARGUMENT);
    RANK_CHECK(GCCL_Group_depth() == 1);
    RANK_SUCCESS(GCCL_Group_end());
    RANK_CHECK(sum == 1);
    RANK_SUCCESS(GCCL_Recv(&got, 1, GCCL_INT32, 0, self));  // what is given up goes on
    RANK_CHECK(got == 7);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// An all-reduce in flight on a communicator of its own, which the two ranks begin with different operations.
struct Differing {
  GCCL_Comm c = GCCL_COMM_NULL;
  GCCL_Request request = GCCL_REQUEST_NULL;
  std::vector<float> a = std::vector<float>(100000, 1), b = std::vector<float>(100000);
  explicit Differing(int rank) {
    GCCL_Comm world = begin();
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
    RANK_SUCCESS(GCCL_Iallreduce(a.data(), b.data(), a.size(), GCCL_FLOAT32, rank ? GCCL_MAX : GCCL_SUM, c, &request));
  }
};

// A request is given up before or after its operation has failed; the communicator is freed or released.
TEST_CASE("the error of a request that was given up is reported where its communicator ends") {
  using End = GCCL_Result (*)(GCCL_Comm*);
  for (const char* backends : {"shm", "tcp"})
    for (const bool before : {true, false})
      for (const End end : {End(GCCL_Comm_free), End(GCCL_Comm_release), End(nullptr)})
        check({.size = 2, .backends = backends}, [&](int rank) {
          Differing call(rank);
          GCCL_Comm& c = call.c;
          GCCL_Request& request = call.request;
          if (before) RANK_SUCCESS(GCCL_Request_free(&request));
          // It has failed once the metrics say so; no call that returns an error is made meanwhile.
          GCCL_Metrics m{};
          for (m.struct_bytes = sizeof m;;) {
            RANK_SUCCESS(GCCL_Progress());
            RANK_SUCCESS(GCCL_Get_performance_metrics(c, &m));
            bool any = false;
            for (const GCCL_Call_metrics& k : m.calls) any |= k.failed > 0;
            if (any) break;
          }
          if (!before) RANK_SUCCESS(GCCL_Request_free(&request));
          const GCCL_Result freed = end ? end(&c) : GCCL_ERR_MISMATCH;
          const GCCL_Result finalized = GCCL_Finalize();
          expect(freed, GCCL_ERR_MISMATCH, end ? "the communicator's end" : "");
          // Without one of its own, GCCL_Finalize is the communicator's end.
          expect(finalized, end ? GCCL_SUCCESS : GCCL_ERR_MISMATCH, "finalize");
        });
}

TEST_CASE("an error that a wait, a test or a function has given out is not reported again") {
  for (int way = 0; way < 3; ++way)
    check({.size = 2}, [&](int rank) {
      Differing call(rank);
      GCCL_Comm& c = call.c;
      GCCL_Request& request = call.request;
      static std::atomic<int> heard;
      heard = 0;
      int done = 0;
      GCCL_Result result = GCCL_SUCCESS;
      if (way == 0) result = GCCL_Wait(&request);
      while (way == 1 && !done) result = GCCL_Test(&request, &done);
      if (way == 2) {
        RANK_SUCCESS(GCCL_On_complete(
            request, [](GCCL_Result r, void*) { heard = int(r); }, nullptr));
        while (!heard) RANK_SUCCESS(GCCL_Progress());
        result = GCCL_Result(heard.load());
        RANK_SUCCESS(GCCL_Request_free(&request));
      }
      expect(result, GCCL_ERR_MISMATCH, "the request");
      RANK_SUCCESS(GCCL_Comm_free(&c));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

}  // namespace
