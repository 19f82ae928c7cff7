// Communicators that replace ranks which are killed by processes that wait, or that were started again: the policies
// spare and rejoin. At random moments: runtime_replace_random.cpp.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/grown_job.hpp"

using namespace ranks;

namespace {

using grown::Grown;

// The others wait so long for a spare, which on a busy machine may ask later than in the 0.6 s of the default.
Job with_spares(int size, const char* backends, const char* wait_ms) {
  return {.size = size,
          .backends = backends,
          .environment = {{"GCCL_ON_FAILURE", "spare"}, {"GCCL_REPLACE_WAIT_MS", wait_ms}}};
}

// Three ranks, of which `victims` are killed while they reduce; others take their places. What each rank that is left,
// or has joined, finds out goes to `look`.
template <class Look>
std::vector<End> replaced(Grown& g, const std::set<int>& victims, bool restarted, Look look) {
  Running running(g.job, [&](int process) {
    GCCL_Comm comm = GCCL_COMM_NULL;
    const bool joins = g.joins(process);
    if (joins) {
      ::setenv("GCCL_JOIN", "1", 1);
      ::unsetenv("GCCL_RANK");
      if (restarted) ::setenv("GCCL_RANK", std::to_string(*std::next(victims.begin(), process - 3)).c_str(), 1);
      RANK_SUCCESS(GCCL_Init(&comm, nullptr));
    } else {
      comm = grown::begin_of(3);
      ready(comm);
      GCCL_Result r = GCCL_SUCCESS;
      double x = 1, y = 0;
      while (r == GCCL_SUCCESS) {
        r = GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT64, GCCL_SUM, comm);
        if (r == GCCL_SUCCESS) RANK_CHECK(y == 3);
      }
      expect(r, GCCL_ERR_RANKS_CHANGED, "all-reduce");
      expect_text(" go on, this one as rank ", "all-reduce");
    }
    look(comm, process);
    GCCL_Finalize();
  });
  CHECK(running.await_ready(3));
  for (const int v : victims) running.kill(v, SIGKILL);
  return running.wait();
}

}  // namespace

TEST_CASE("with the policy spare the others keep their numbers, and the new rank has the one that was lost") {
  for (const char* backends : {"shm", "tcp"})
    for (const int victim : {0, 1, 2}) {
      Grown g(with_spares(4, backends, "60000"), 3);
      grown::check_grown(g,
                         replaced(g, {victim}, false,
                                  [&](GCCL_Comm comm, int process) {
                                    std::vector<int> due = {0, 1, 2};
                                    due[std::size_t(victim)] = 3;
                                    RANK_CHECK(grown::joined_of(comm) == std::set<int>{victim});
                                    grown::agree_on_numbers(comm, process, due);
                                    grown::use(comm, 7, 24);
                                  }),
                         {victim});
    }
}

TEST_CASE("without enough spares the others go on as with shrink, and are whole again when one comes later") {
  Grown g(with_spares(4, "tcp", "3000"), 3);
  grown::check_grown(g,
                     replaced(g, {0, 2}, false,
                              [&](GCCL_Comm comm, int) {
                                // Both may be missed at once, or one after the other.
                                GCCL_Result r = GCCL_SUCCESS;
                                int size = size_of(comm);
                                while (size > 2) {
                                  r = GCCL_Barrier(comm);
                                  RANK_CHECK((r == GCCL_SUCCESS || r == GCCL_ERR_RANKS_CHANGED));
                                  size = size_of(comm);
                                  if (r != GCCL_SUCCESS && r != GCCL_ERR_RANKS_CHANGED) return;
                                }
                                if (r == GCCL_SUCCESS) GCCL_Barrier(comm);  // handed back, where it was not yet
                                RANK_CHECK(size == 2);
                              }),
                     {0, 2});
}

TEST_CASE("with the policy rejoin each process that is started again gets its own number") {
  for (const char* backends : {"shm", "tcp"}) {
    Grown g({.size = 5, .backends = backends, .environment = {{"GCCL_ON_FAILURE", "rejoin"}}}, 3);
    grown::check_grown(g,
                       replaced(g, {0, 2}, true,
                                [&](GCCL_Comm comm, int process) {
                                  // They may come one after the other: then the next collective is handed back, too.
                                  GCCL_Result r = GCCL_ERR_RANKS_CHANGED;
                                  for (int i = 0; i < 6 && r == GCCL_ERR_RANKS_CHANGED; ++i) {
                                    std::int32_t mine = process, sum = 0;
                                    r = GCCL_Allreduce(&mine, &sum, 1, GCCL_INT32, GCCL_SUM, comm);
                                    if (r == GCCL_SUCCESS && sum != 3 + 1 + 4) r = GCCL_ERR_RANKS_CHANGED;
                                  }
                                  RANK_SUCCESS(r);
                                  RANK_CHECK(size_of(comm) == 3);
                                  RANK_CHECK(rank_of(comm) == (process == 3 ? 0 : process == 4 ? 2 : 1));
                                }),
                       {0, 2});
  }
}

TEST_CASE("with the policy rejoin a spare is refused, and the others wait for the rank itself, or go on without") {
  for (const bool comes_back : {true, false}) {
    Grown g({.size = comes_back ? 5 : 4,
             .backends = "shm,tcp",
             .environment = {{"GCCL_ON_FAILURE", "rejoin"}, {"GCCL_REPLACE_WAIT_MS", comes_back ? "60000" : "2000"}}},
            3);
    Running running(g.job, [&](int process) {
      GCCL_Comm comm = GCCL_COMM_NULL;
      if (process == 3) {
        ::unsetenv("GCCL_RANK");
        expect(GCCL_Join(&comm, nullptr), GCCL_ERR_INVALID_USAGE, "spare");
        expect_text("set GCCL_RANK to that of one", "spare");
        std::ofstream(g.folder.path / "refused");
        return;
      }
      double mine = 1, sum = 0;
      if (process == 4) {
        while (!std::filesystem::exists(g.folder.path / "refused")) ::usleep(5000);
        ::setenv("GCCL_RANK", "1", 1);
        RANK_SUCCESS(GCCL_Join(&comm, nullptr));
      } else {
        comm = grown::begin_of(3);
        ready(comm);
        GCCL_Result r = GCCL_SUCCESS;
        while (r == GCCL_SUCCESS) r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
        expect(r, GCCL_ERR_RANKS_CHANGED, "all-reduce");
      }
      RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm));
      RANK_CHECK(sum == (comes_back ? 3 : 2));
      RANK_CHECK(rank_of(comm) == (process == 4 ? 1 : process == 2 && !comes_back ? 1 : process));
      GCCL_Finalize();
    });
    CHECK(running.await_ready(3));
    running.kill(1, SIGKILL);
    const std::vector<End> ends = running.wait();
    std::filesystem::remove(g.folder.path / "refused");
    grown::check_grown(g, ends, {1});
  }
}

// The others close up first. Of two processes that were started as the same rank one gets its place, and the other
// none.
TEST_CASE("with the policy rejoin ranks get their own numbers, also after the others have closed up") {
  Grown g({.size = 6,
           .backends = "shm,tcp",
           .environment = {{"GCCL_ON_FAILURE", "rejoin"}, {"GCCL_REPLACE_WAIT_MS", "4000"}}},
          3);
  const std::filesystem::path closed_up = g.folder.path / "closed-up", whole = g.folder.path / "whole";
  Running running(g.job, [&](int process) {
    GCCL_Comm comm = GCCL_COMM_NULL;
    if (g.joins(process)) {
      while (!std::filesystem::exists(closed_up)) ::usleep(5000);
      ::setenv("GCCL_RANK", process == 4 ? "2" : "0", 1);
      ::setenv("GCCL_JOIN_TIMEOUT_MS", "12000", 1);
      const GCCL_Result r = GCCL_Join(&comm, nullptr);
      if (r == GCCL_ERR_TIMEOUT && process != 4) {
        RANK_CHECK(std::filesystem::exists(whole));
        return;
      }
      RANK_CHECK(r == GCCL_SUCCESS);
    } else {
      comm = grown::begin_of(3);
      ready(comm);
    }
    const auto until_there_are = [&](int size) {
      GCCL_Result r = GCCL_ERR_RANKS_CHANGED;
      double mine = 1, sum = 0;
      while (r == GCCL_ERR_RANKS_CHANGED || (r == GCCL_SUCCESS && sum != size))
        r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
      RANK_SUCCESS(r);
    };
    if (!g.joins(process)) until_there_are(2);
    if (process == 2) std::printf("closed up\n"), std::fflush(stdout);
    until_there_are(3);
    std::ofstream(whole.string());
    RANK_CHECK(rank_of(comm) == (process == 1 ? 1 : process == 4 ? 2 : 0));
    GCCL_Finalize();
  });
  CHECK(running.await_ready(3));
  running.kill(0, SIGKILL);
  CHECK(running.await(2, "closed up\n"));
  std::ofstream(closed_up.string());
  running.kill(2, SIGKILL);
  const std::vector<End> ends = running.wait();
  std::filesystem::remove(closed_up);
  std::filesystem::remove(whole);
  grown::check_grown(g, ends, {0, 2});
}

// As under a launcher that starts a spare again each time: one that can open no more files after it was admitted.
TEST_CASE("a spare that fails each time it joins keeps the others from going on only for a while") {
  Grown g(with_spares(4, "shm,tcp", "3000"), 3);
  const std::filesystem::path done = g.folder.path / "done";
  Running running(g.job, [&](int process) {
    if (process == 3) {
      ::setenv("GCCL_JOIN_TIMEOUT_MS", "3000", 1);
      int failed = 0;
      while (!std::filesystem::exists(done)) {
        if (const pid_t child = ::fork(); child == 0) {
          ::close_range(3, ~0u, 0);
          const rlimit few{6, 6};
          ::setrlimit(RLIMIT_NOFILE, &few);
          GCCL_Comm comm = GCCL_COMM_NULL;
          ::_exit(GCCL_Join(&comm, nullptr) == GCCL_ERR_SYSTEM ? 0 : 1);
        } else {
          int status = -1;
          RANK_CHECK(::waitpid(child, &status, 0) == child);
          failed += status == 0;
        }
      }
      RANK_CHECK(failed > 0);
      return;
    }
    GCCL_Comm comm = grown::begin_of(3);
    ready(comm);
    GCCL_Result r = GCCL_SUCCESS;
    double x = 1, y = 0;
    while (r == GCCL_SUCCESS) r = GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT64, GCCL_SUM, comm);
    expect(r, GCCL_ERR_RANKS_CHANGED, "all-reduce");
    RANK_CHECK(size_of(comm) == 2);
    std::ofstream(done.string());
    GCCL_Finalize();
  });
  CHECK(running.await_ready(3));
  running.kill(1, SIGKILL);
  const std::vector<End> ends = running.wait();
  std::filesystem::remove(done);
  grown::check_grown(g, ends, {1});
}

// A barrier that all others have entered succeeds, and the next call is handed back: so the new rank's first call is
// the one after that, which the next recovery relies on.
TEST_CASE("ranks are replaced in a barrier, then in an all-reduce, and all go on with the same call each time") {
  for (const char* backends : {"shm", "tcp"}) {
    Grown g(with_spares(5, backends, "60000"), 3);
    Running running(g.job, [&](int process) {
      GCCL_Comm comm = GCCL_COMM_NULL;
      GCCL_Result r = GCCL_SUCCESS;
      double mine = 1, sum = 0;
      if (process == 4) {
        while (!std::filesystem::exists(g.folder.path / "second")) ::usleep(5000);
      }
      if (g.joins(process)) {
        ::unsetenv("GCCL_RANK");
        RANK_SUCCESS(GCCL_Join(&comm, nullptr));
      } else {
        comm = grown::begin_of(3);
        ready(comm);
        while (r == GCCL_SUCCESS) r = GCCL_Barrier(comm);
        expect(r, GCCL_ERR_RANKS_CHANGED, "barrier");
      }
      if (process < 4) {
        RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm));
        RANK_CHECK(sum == 3);
        if (process == 2) std::printf("second\n"), std::fflush(stdout);
        for (r = GCCL_SUCCESS; r == GCCL_SUCCESS;) r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
        expect(r, GCCL_ERR_RANKS_CHANGED, "all-reduce");
      }
      grown::agree_on_numbers(comm, process, {0, 3, 4});
      RANK_CHECK(grown::joined_of(comm) == std::set<int>{2});
      grown::use(comm, 9, 12);
      GCCL_Finalize();
    });
    CHECK(running.await_ready(3));
    running.kill(1, SIGKILL);
    CHECK(running.await(2, "second\n"));
    g.folder.write("second", "");
    ::usleep(50000);  // the last spare asks
    running.kill(2, SIGKILL);
    const std::vector<End> ends = running.wait();
    std::filesystem::remove(g.folder.path / "second");
    grown::check_grown(g, ends, {1, 2});
  }
}

namespace {

// Three processes that have a state, and spares that get it from the lowest rank that is not new. Each counts 10 calls.
void keep_the_state(Grown& g, int killed_at_step, int killed_at_that_step, int killed_in_catching_up,
                    const std::set<int>& new_at_the_end) {
  constexpr std::int32_t kFirst = 100, kLast = kFirst + 10;
  const std::set<int> killed = {killed_at_step, std::max(killed_at_that_step, killed_in_catching_up)};
  const std::vector<End> ends = run(g.job, [&](int process) {
    const GCCL_Comm comm = g.joins(process) ? grown::join() : grown::begin_of(g.members);
    if (!comm) return;
    std::int32_t state = g.joins(process) ? -1 : kFirst;
    bool behind = g.joins(process);
    while (state < kLast && !any_reported()) {
      if (!behind && ((process == killed_at_step && state == kFirst + 3) ||
                      (process == killed_at_that_step && state == kFirst + 6)))
        ::kill(::getpid(), SIGKILL);
      std::int32_t next = state;
      GCCL_Result r;
      if (behind) {
        if (process == killed_in_catching_up) ::kill(::getpid(), SIGKILL);
        const std::set<int> fresh = grown::joined_of(comm);
        int root = 0;
        while (fresh.contains(root)) ++root;
        if (root >= size_of(comm)) return report("no rank has the state");
        RANK_CHECK(fresh.contains(rank_of(comm)) == (state < 0));
        r = GCCL_Broadcast(&next, 1, GCCL_INT32, root, comm);
      } else {
        r = GCCL_Allreduce(&state, &next, 1, GCCL_INT32, GCCL_MIN, comm);
        ++next;
      }
      if (r == GCCL_SUCCESS) {
        state = next;
        behind = false;
        RANK_CHECK(state >= kFirst);
      } else {
        behind = true;
        expect(r, GCCL_ERR_RANKS_CHANGED, "a call");
      }
    }
    RANK_CHECK(grown::joined_of(comm) == new_at_the_end);
    GCCL_Finalize();
  });
  grown::check_grown(g, ends, killed);
}

}  // namespace

TEST_CASE("a rank that has joined is no longer new after a recovery in which nobody did, as it has the state by then") {
  for (const char* backends : {"shm", "tcp"}) {
    Grown g(with_spares(4, backends, "3000"), 3);
    keep_the_state(g, 1, 0, -1, {});
  }
}

TEST_CASE("a rank that has joined is new until a call has succeeded, however often the others recover before") {
  for (const char* backends : {"shm", "tcp"}) {
    {
      INFO("nobody joins in the second recovery");
      Grown g(with_spares(4, backends, "3000"), 3);
      keep_the_state(g, 0, -1, 1, {0});
    }
    {
      INFO("another one joins in the second recovery");
      Grown g(with_spares(5, backends, "60000"), 3);
      keep_the_state(g, 0, -1, 1, {0, 1});
    }
  }
}

TEST_CASE("policies that need a store, or differ, are refused on all ranks alike") {
  check({.size = 1}, [](int) {
    ::unsetenv("GCCL_STORE");
    GCCL_Comm world = begin();
    expect(GCCL_Comm_set_on_failure(world, GCCL_SPARE), GCCL_ERR_NOT_SUPPORTED, "no store");
    expect_text("knows no store where processes could join", "no store");
    RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
    expect(GCCL_Comm_set_on_failure(world, GCCL_Failure_policy(4)), GCCL_ERR_INVALID_ARGUMENT, "policy");
    RANK_SUCCESS(GCCL_Finalize());
    ::setenv("GCCL_ON_FAILURE", "rejoin", 1);
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_ARGUMENT, "no store at the start");
    expect_text("GCCL_ON_FAILURE is rejoin, and there is no store", "no store at the start");
  });
  check({.size = 2, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin();
    expect(GCCL_Comm_set_on_failure(world, rank == 0 ? GCCL_SPARE : GCCL_REJOIN), GCCL_ERR_MISMATCH, "differ");
    expect_text("rank 0 sets GCCL_SPARE, rank 1 sets GCCL_REJOIN", "differ");
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}
