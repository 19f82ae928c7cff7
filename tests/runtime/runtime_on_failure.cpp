// GCCL_On_failure: what the program is notified of and when, and what its function may do, and may not.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

TEST_CASE("with the policy fail a killed rank is reported once, and nothing is repeated") {
  Running running({.size = 2, .backends = "shm"}, [](int) {
    GCCL_Comm world = begin();
    int notifications = 0;
    RANK_SUCCESS(GCCL_On_failure(
        world,
        [](GCCL_Comm comm, const GCCL_Failure* f, void* n) {
          ++*static_cast<int*>(n);
          RANK_CHECK(f->stage == GCCL_FAILURE_NOTICED && f->count == 1 && f->ranks[0] == 0 && f->size == 2);
          double y = 0;
          GCCL_Request request;
          expect(GCCL_Iallreduce(GCCL_IN_PLACE, &y, 1, GCCL_FLOAT64, GCCL_SUM, comm, &request), GCCL_ERR_INVALID_USAGE,
                 "inside");
          GCCL_Comm other = comm;
          expect(GCCL_Comm_free(&other), GCCL_ERR_INVALID_USAGE, "freed inside");
          expect(GCCL_Comm_shrink(comm, &other), GCCL_ERR_INVALID_USAGE, "shrunk inside");
        },
        &notifications));
    lose(world, 0);
    for (int i = 0; i < 3; ++i) expect(GCCL_Barrier(world), GCCL_ERR_PEER_LOST, "barrier");
    RANK_CHECK(notifications == 1);
    GCCL_Finalize();
  });
  check_others(running.wait(), {0});
}

TEST_CASE("the program is notified before the call that finds the failure returns, whichever call that is") {
  using Call = GCCL_Result (*)(GCCL_Comm*);
  // Until GCCL_Progress has found the failure, which no call has returned then.
  static const auto found_by_progress = [](GCCL_Comm world) {
    static double x = 1;
    GCCL_Request request = GCCL_REQUEST_NULL;
    if (GCCL_Iallreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, world, &request) != GCCL_SUCCESS) return;
    const auto began = Clock::now();
    while (seconds_since(began) < 1) GCCL_Progress();
    RANK_SUCCESS(GCCL_Request_free(&request));
  };
  static constexpr int kBoth[] = {0, 1};
  const std::vector<std::pair<const char*, Call>> calls = {
      {"allreduce",
       [](GCCL_Comm* world) {
         double x = 1, sum = 0;
         return GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, *world);
       }},
      {"broadcast",
       [](GCCL_Comm* world) {
         double x = 1;
         return GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 1, *world);
       }},
      {"barrier", [](GCCL_Comm* world) { return GCCL_Barrier(*world); }},
      {"recv",
       [](GCCL_Comm* world) {
         double x = 0;
         return GCCL_Recv(&x, 1, GCCL_FLOAT64, 1, *world);
       }},
      {"split",
       [](GCCL_Comm* world) {
         GCCL_Comm made;
         return GCCL_Comm_split(*world, 0, 0, &made);
       }},
      {"create",
       [](GCCL_Comm* world) {
         GCCL_Comm made;
         return GCCL_Comm_create(*world, kBoth, 2, &made);
       }},
      {"set_on_failure", [](GCCL_Comm* world) { return GCCL_Comm_set_on_failure(*world, GCCL_FAIL); }},
      {"agree",
       [](GCCL_Comm* world) {
         std::uint64_t flags = 1;
         return GCCL_Comm_agree(*world, &flags);
       }},
      {"free", [](GCCL_Comm* world) { return GCCL_Comm_free(world); }},
      {"release",
       [](GCCL_Comm* world) {
         found_by_progress(*world);
         return GCCL_Comm_release(world);
       }},
      {"finalize", [](GCCL_Comm*) { return GCCL_Finalize(); }},
      {"finalize of what has failed",
       [](GCCL_Comm* world) {
         found_by_progress(*world);
         return GCCL_Finalize();
       }},
      {"iallreduce on what has failed",
       [](GCCL_Comm* world) {
         found_by_progress(*world);
         double x = 1;
         GCCL_Request request = GCCL_REQUEST_NULL;
         return GCCL_Iallreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, *world, &request);
       }},
      {"a group on what has failed",
       [](GCCL_Comm* world) {
         found_by_progress(*world);
         double x = 1;
         RANK_SUCCESS(GCCL_Group_start());
         (void)GCCL_Send(&x, 1, GCCL_FLOAT64, 1, *world);
         return GCCL_Group_end();
       }},
      {"wait",
       [](GCCL_Comm* world) {
         double x = 1;
         GCCL_Request request = GCCL_REQUEST_NULL;
         const GCCL_Result started = GCCL_Irecv(&x, 1, GCCL_FLOAT64, 1, *world, &request);
         return started == GCCL_SUCCESS ? GCCL_Wait(&request) : started;
       }},
  };
  for (const char* backends : {"shm", "tcp"})
    for (const auto& one : calls) {
      const char* const name = one.first;
      const Call call = one.second;
      const std::vector<End> ends = run({.size = 2, .backends = backends}, [&](int) {
        GCCL_Comm world = begin();
        int notifications = 0;
        RANK_SUCCESS(GCCL_On_failure(
            world,
            [](GCCL_Comm, const GCCL_Failure* f, void* n) {
              ++*static_cast<int*>(n);
              RANK_CHECK(f->stage == GCCL_FAILURE_NOTICED && f->count == 1 && f->ranks[0] == 1 && f->size == 2);
            },
            &notifications));
        // As often as it takes for the next one to repeat the one before.
        double x = 1, sum = 0;
        for (int i = 0; i < 5; ++i) {
          RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
          RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 1, world));
          RANK_SUCCESS(GCCL_Barrier(world));
        }
        lose(world, 1);
        expect(call(&world), GCCL_ERR_PEER_LOST, name);
        RANK_CHECK(notifications == 1);
      });
      check_others(ends, {1}, std::string(backends) + ", " + name);
    }
}

TEST_CASE("a function of the program's must not communicate on its communicator, agree on it nor free it") {
  struct Inside {
    GCCL_Comm world, other;
    bool one_thread;
    int called;
  };
  for (const char* policy : {"fail", "shrink"}) {
    Job job{.size = 3, .backends = "shm"};
    job.environment["GCCL_ON_FAILURE"] = policy;
    const std::vector<End> ends = run(job, [&](int rank) {
      Inside in{.world = begin(), .other = GCCL_COMM_NULL, .one_thread = policy[0] != 'f', .called = 0};
      RANK_SUCCESS(GCCL_Comm_split(in.world, rank == 2 ? GCCL_UNDEFINED : 0, rank, &in.other));
      RANK_SUCCESS(GCCL_On_failure(
          in.world,
          [](GCCL_Comm comm, const GCCL_Failure*, void* context) {
            Inside& i = *static_cast<Inside*>(context);
            ++i.called;
            double x = 1, y = 0;
            std::uint64_t flags = 7;
            GCCL_Comm made = GCCL_COMM_NULL, same = comm;
            GCCL_Request request = GCCL_REQUEST_NULL;
            const int ranks[] = {0};
            const auto refused = [](GCCL_Result r, const char* what) { expect(r, GCCL_ERR_INVALID_USAGE, what); };
            refused(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT64, GCCL_SUM, comm), "allreduce");
            refused(GCCL_Barrier(comm), "barrier");
            refused(GCCL_Send(&x, 1, GCCL_FLOAT64, 0, comm), "send");
            refused(GCCL_Ibarrier(comm, &request), "ibarrier");
            refused(GCCL_Comm_agree(comm, &flags), "agree");
            RANK_CHECK(flags == 7);
            refused(GCCL_Comm_shrink(comm, &made), "shrink");
            refused(GCCL_Comm_grow(comm, 1, 0, &made), "grow");
            refused(GCCL_Comm_split(comm, 0, 0, &made), "split");
            refused(GCCL_Comm_create(comm, ranks, 1, &made), "create");
            refused(GCCL_Comm_set_on_failure(comm, GCCL_FAIL), "set_on_failure");
            refused(GCCL_Comm_free(&same), "free");
            refused(GCCL_Comm_release(&same), "release");
            refused(GCCL_Finalize(), "finalize");
            expect_text("a function of GCCL_On_failure", "why");
            int size = 0;
            RANK_SUCCESS(GCCL_Comm_size(comm, &size));
            RANK_SUCCESS(GCCL_Barrier(i.other));
            // Another thread's call is not this function's. With a policy that recovers one thread makes them all.
            if (i.one_thread) return;
            std::thread([comm] { expect(GCCL_Barrier(comm), GCCL_ERR_PEER_LOST, "in another thread"); }).join();
          },
          &in));
      double x = 1, sum = 0;
      for (int i = 0; i < 3; ++i) RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, in.world));
      lose(in.world, 2);
      if (policy[0] == 'f') {
        std::uint64_t flags = 7;
        // By this call, which leaves the communicator as it was.
        expect(GCCL_Comm_agree(in.world, &flags), GCCL_ERR_PEER_LOST, "agree");
        RANK_CHECK(in.called == 1);
      } else {
        RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, in.world));
        RANK_CHECK(in.called == 2);
        RANK_CHECK(sum == 2);
      }
      GCCL_Finalize();
    });
    check_others(ends, {2}, policy);
  }
}

TEST_CASE("calls of the program's function are none of a group, and it finalizes nothing, also not in finalize") {
  struct Inside {
    GCCL_Comm pair;
    bool finalizes;
    int called;
  };
  for (const bool in_finalize : {false, true}) {
    const std::vector<End> ends = run({.size = 3, .backends = "shm"}, [&](int rank) {
      Inside in{.pair = GCCL_COMM_NULL, .finalizes = in_finalize, .called = 0};
      GCCL_Comm world = begin();
      RANK_SUCCESS(GCCL_Comm_split(world, rank == 2 ? GCCL_UNDEFINED : 0, rank, &in.pair));
      RANK_SUCCESS(GCCL_On_failure(
          world,
          [](GCCL_Comm comm, const GCCL_Failure*, void* context) {
            Inside& i = *static_cast<Inside*>(context);
            ++i.called;
            if (i.finalizes) {
              expect(GCCL_Finalize(), GCCL_ERR_INVALID_USAGE, "finalize");
              return;
            }
            std::int32_t one = 1, sum = -7;
            RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_INT32, GCCL_SUM, i.pair));
            RANK_CHECK(sum == 2);
            expect(GCCL_Barrier(comm), GCCL_ERR_INVALID_USAGE, "barrier");
          },
          &in));
      lose(world, 2);
      if (in_finalize) {
        expect(GCCL_Finalize(), GCCL_ERR_PEER_LOST, "finalize");
      } else {
        // Each of the two finds the failure by itself, and then begins a group on what has failed.
        GCCL_Request request = GCCL_REQUEST_NULL;
        RANK_CHECK(GCCL_Ibarrier(world, &request) == GCCL_SUCCESS);
        const auto began = Clock::now();
        while (seconds_since(began) < 1) GCCL_Progress();
        RANK_SUCCESS(GCCL_Request_free(&request));
        double x = 1;
        RANK_SUCCESS(GCCL_Group_start());
        expect(GCCL_Send(&x, 1, GCCL_FLOAT64, 1, world), GCCL_ERR_PEER_LOST, "send");
        expect(GCCL_Group_end(), GCCL_ERR_PEER_LOST, "the group");
      }
      RANK_CHECK(in.called == 1);
    });
    check_others(ends, {2}, in_finalize ? "in finalize" : "");
  }
}

// Which frees nothing, and does not keep from that thread the functions that it waits for.
TEST_CASE("GCCL_Finalize is an error while another thread is in the program's function, which goes on") {
  Running running({.size = 2}, [](int rank) {
    static GCCL_Comm self;
    static std::atomic<bool> entered, refused, completed;
    entered = refused = completed = false;
    GCCL_Comm world = begin();
    RANK_SUCCESS(GCCL_Comm_split(world, rank, 0, &self));
    RANK_SUCCESS(GCCL_On_failure(
        world,
        [](GCCL_Comm, const GCCL_Failure*, void*) {
          entered = true;
          while (!refused) ::usleep(1000);
          GCCL_Request request = GCCL_REQUEST_NULL;
          RANK_SUCCESS(GCCL_Ibarrier(self, &request));
          RANK_SUCCESS(GCCL_On_complete(
              request, [](GCCL_Result, void*) { completed = true; }, nullptr));
          RANK_SUCCESS(GCCL_Wait(&request));
          RANK_CHECK(completed);
        },
        nullptr));
    lose(world, 0);
    std::thread calls([&] { expect(GCCL_Barrier(world), GCCL_ERR_PEER_LOST, "barrier"); });
    while (!entered) ::usleep(1000);
    expect(GCCL_Finalize(), GCCL_ERR_INVALID_USAGE, "finalize");
    refused = true;
    calls.join();
    RANK_CHECK(completed);
    RANK_CHECK(GCCL_Finalize() != GCCL_ERR_INVALID_USAGE);
  });
  check_others(running.wait(), {0});
}

TEST_CASE("a function that throws frees nothing less, and a second failure is reported as the first was") {
  const std::vector<End> ends = run({.size = 4, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin();
    static int called = 0;
    RANK_SUCCESS(GCCL_On_failure(
        world,
        [](GCCL_Comm, const GCCL_Failure* f, void*) {
          ++called;
          RANK_CHECK(f->count >= 1);
          if (called == 2) throw 1;
        },
        nullptr));
    std::uint64_t flags = 1;
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    lose(world, 3);
    expect(GCCL_Comm_agree(world, &flags), GCCL_ERR_PEER_LOST, "agree");
    RANK_CHECK(called == 1);
    RANK_SUCCESS(GCCL_Comm_ack_failed(world));
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    RANK_CHECK(called == 1);
    if (rank == 2) {
      ::usleep(500'000);  // the others may still be in that call, and no other is left to say so
      ::kill(::getpid(), SIGKILL);
    }
    expect(GCCL_Comm_free(&world), GCCL_ERR_INVALID_USAGE, "free");
    expect_text("a function of GCCL_On_failure threw an exception", "free");
    RANK_CHECK(called == 2);
    RANK_CHECK(world == GCCL_COMM_NULL);
  });
  check_others(ends, {2, 3});
}

TEST_CASE("the program hears who is left, and of a call that it has not to make anew nothing else") {
  for (Job job : transports(3)) {
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    const std::vector<End> ends = run(job, [](int rank) {
      GCCL_Comm world = begin();
      std::string heard;
      RANK_SUCCESS(GCCL_On_failure(
          world,
          [](GCCL_Comm, const GCCL_Failure* f, void* to) {
            if (f->stage == GCCL_FAILURE_RECOVERED) *static_cast<std::string*>(to) = f->text;
          },
          &heard));
      lose(world, 2);
      double x = 1;
      RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, world));
      RANK_CHECK(x == 2);
      const std::string due =
          "ranks have other numbers now: lost rank 2, and 2 of 3 go on, this one as rank " + std::to_string(rank);
      if (heard != due) report("heard \"" + heard + "\"");
      RANK_SUCCESS(GCCL_Finalize());
    });
    check_others(ends, {2});
  }
}

TEST_CASE("an exception of the program's function ends the communicator on all ranks, and none is a call behind") {
  for (const int stage : {GCCL_FAILURE_NOTICED, GCCL_FAILURE_RECOVERED}) {
    Job job{.size = 3, .backends = "shm"};
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    const std::vector<End> ends = run(job, [stage](int rank) {
      GCCL_Comm world = begin();
      const auto thrower = [](GCCL_Comm, const GCCL_Failure* f, void* at) {
        if (f->stage == *static_cast<int*>(at)) throw 1;
      };
      int at = rank == 1 ? stage : -1;
      RANK_SUCCESS(GCCL_On_failure(world, thrower, &at));
      lose(world, 0);
      for (int i = 0; i < 2; ++i) {
        double x = 1;
        expect(GCCL_Allreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, world), GCCL_ERR_INVALID_USAGE, "thrown");
      }
      expect_text("threw an exception", "why");
      GCCL_Finalize();
    });
    check_others(ends, {0});
  }
}

TEST_CASE("a group, and all of many requests, have ended when their wait returns, also where a function throws") {
  std::vector<std::pair<Job, bool>> cases;
  for (const Job& job : transports(3)) {
    cases.emplace_back(job, true);
    cases.emplace_back(job, false);
  }
  for (const auto& one : cases) {
    const bool in_group = one.second;
    const std::vector<End> ends = run(one.first, [in_group](int rank) {
      GCCL_Comm world = begin(), pair = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, rank < 2 ? 0 : GCCL_UNDEFINED, 0, &pair));
      RANK_SUCCESS(GCCL_On_failure(
          world, [](GCCL_Comm, const GCCL_Failure*, void*) { throw 1; }, nullptr));
      lose(world, 2);
      double x = 5, y = 0, lost = 0;
      if (rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT64, 0, pair));
      } else if (in_group) {
        RANK_SUCCESS(GCCL_Group_start());
        RANK_SUCCESS(GCCL_Recv(&lost, 1, GCCL_FLOAT64, 2, world));
        RANK_SUCCESS(GCCL_Recv(&y, 1, GCCL_FLOAT64, 1, pair));
        expect(GCCL_Group_end(), GCCL_ERR_INVALID_USAGE, "thrown");
        expect_text("threw an exception", "why");
        RANK_CHECK(y == 5);
      } else {
        GCCL_Request requests[2];
        RANK_SUCCESS(GCCL_Irecv(&lost, 1, GCCL_FLOAT64, 2, world, &requests[0]));
        RANK_SUCCESS(GCCL_Irecv(&y, 1, GCCL_FLOAT64, 1, pair, &requests[1]));
        expect(GCCL_Waitall(2, requests), GCCL_ERR_INVALID_USAGE, "thrown");
        RANK_CHECK(requests[0] == GCCL_REQUEST_NULL && requests[1] == GCCL_REQUEST_NULL);
        expect_text("threw an exception", "why");
        RANK_CHECK(y == 5);
      }
      GCCL_Finalize();
    });
    check_others(ends, {2}, describe(one.first) + (in_group ? ", group" : ""));
  }
}
