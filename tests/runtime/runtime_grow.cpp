// Processes join a job that runs: a communicator grows, or spares take the places of ranks that were killed.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/grown_job.hpp"

using namespace ranks;

namespace {

using grown::Grown;

std::string local_tcp_store() {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&at), bytes) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes) == 0);
  ::close(fd);
  return "tcp://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

// The communicator of `members` grows by all others, then everybody uses it.
void grow_healthy(Grown& g) {
  const std::vector<End> ends = run(g.job, [&](int process) {
    const std::size_t files = gccl::test::own("fd");
    GCCL_Comm world = GCCL_COMM_NULL, all = GCCL_COMM_NULL;
    const int joining = g.job.size - g.members;
    if (g.joins(process)) {
      all = grown::join();
    } else {
      world = grown::begin_of(g.members);
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Comm_grow(world, joining, grown::kEnoughMs, &all));
    }
    if (!all) return;
    std::vector<int> due;
    std::set<int> late;
    for (int r = 0; r < g.job.size; ++r) {
      due.push_back(g.joins(r) ? -1 : r);
      if (g.joins(r)) late.insert(r);
    }
    RANK_CHECK(size_of(all) == g.job.size);
    RANK_CHECK(grown::joined_of(all) == late);
    RANK_CHECK(grown::joined_of(all).contains(rank_of(all)) == g.joins(process));
    grown::agree_on_numbers(all, process, due);
    grown::use(all, 17);
    if (!g.job.nodes.empty()) {  // numbered by their lowest ranks; a new rank's machine is its process's
      std::vector<int> nodes(std::size_t(g.job.size), -1);
      RANK_SUCCESS(GCCL_Comm_nodes(all, nodes.data()));
      RANK_CHECK(nodes[std::size_t(rank_of(all))] == g.job.nodes[std::size_t(process)]);
    }
    GCCL_Comm part = copy_of(all);
    grown::use(part, 18, 12);
    RANK_SUCCESS(GCCL_Comm_free(&part));
    if (world) {  // which is as it was
      RANK_CHECK(grown::joined_of(world).empty());
      grown::use(world, 19, 12);
      RANK_SUCCESS(GCCL_Comm_free(&world));
    }
    grown::use(all, 20, 12);
    grown::finish();
    RANK_CHECK(gccl::test::own_at_rest("fd") == files);
  });
  grown::check_grown(g, ends);
}

}  // namespace

TEST_CASE("a healthy communicator grows by one to three processes") {
  for (int joining = 1; joining <= 3; ++joining) {
    for (const char* backends : {"shm", "tcp"}) {
      Grown g({.size = 2 + joining, .backends = backends}, 2);
      grow_healthy(g);
    }
    Job both{.size = 2 + joining, .backends = "shm,tcp"};
    for (int r = 0; r < both.size; ++r) both.nodes.push_back(r % 2);
    Grown g(both, 2);
    grow_healthy(g);
  }
}

TEST_CASE("a job of one process grows") {
  Grown g({.size = 2, .backends = "shm,tcp"}, 1);
  grow_healthy(g);
}

TEST_CASE("processes join at the address of a TCP store") {
  for (const bool secret : {false, true}) {
    Job job{.size = 4, .backends = "shm,tcp"};
    job.environment["GCCL_STORE"] = local_tcp_store();
    if (secret) job.environment["GCCL_SECRET"] = "of these alone";
    Grown g(job, 2);
    grow_healthy(g);
  }
}

TEST_CASE("a communicator grows again and again, and shrinks to what it was") {
  Grown g({.size = 5, .backends = "shm,tcp"}, 2);
  const std::vector<End> ends = run(g.job, [&](int process) {
    GCCL_Comm comm = g.joins(process) ? grown::join() : grown::begin_of(g.members);
    if (g.joins(process)) grown::use(comm, 3, 12);
    while (comm && size_of(comm) < g.job.size && !any_reported()) {
      GCCL_Comm larger = GCCL_COMM_NULL;
      const int before = size_of(comm);
      RANK_SUCCESS(GCCL_Comm_grow(comm, 1, grown::kEnoughMs, &larger));
      if (!larger) return;
      RANK_CHECK(size_of(larger) == before + 1);
      RANK_CHECK(grown::joined_of(larger) == std::set<int>{before});
      RANK_SUCCESS(GCCL_Comm_free(&comm));
      comm = larger;
      grown::use(comm, 3, 12);
    }
    grown::finish();
  });
  grown::check_grown(g, ends);
}

TEST_CASE("where nobody waits, growing makes the communicator that shrinking makes") {
  for (const char* backends : {"shm", "tcp"})
    for (const int wait_ms : {0, 1500}) {
      Grown g({.size = 3, .backends = backends}, 3);
      grown::check_grown(g, run(g.job, [&](int process) {
                           GCCL_Comm world = grown::begin_of(3), same = GCCL_COMM_NULL;
                           const auto began = Clock::now();
                           // The limit of calls is for what ranks do, not for listening.
                           if (wait_ms == 0) RANK_SUCCESS(GCCL_Comm_set_timeout(world, 500));
                           RANK_SUCCESS(GCCL_Comm_grow(world, 2, wait_ms, &same));
                           for (const GCCL_Comm c : {world, same}) RANK_SUCCESS(GCCL_Comm_set_timeout(c, -1));
                           RANK_CHECK(seconds_since(began) >= wait_ms / 1000.0);
                           RANK_CHECK(seconds_since(began) < wait_ms / 1000.0 + 8);
                           RANK_CHECK(size_of(same) == 3);
                           RANK_CHECK(rank_of(same) == process);
                           RANK_CHECK(grown::joined_of(same).empty());
                           grown::use(same, 4, 12);
                           grown::finish();
                         }));
    }
}

TEST_CASE("a rank is killed, the others shrink, and a spare joins; or it takes the number of the killed one") {
  for (const bool shrinks : {true, false})
    for (const char* backends : {"shm", "tcp", "both"})
      for (const int victim : {0, 1}) {
        Job job{.size = 4, .backends = backends};
        if (job.backends == "both") job = {.size = 4, .backends = "shm,tcp", .nodes = {0, 1, 0, 1}};
        Grown g(job, 3);
        Running running(g.job, [&](int process) {
          GCCL_Comm world = GCCL_COMM_NULL, comm = GCCL_COMM_NULL, whole = GCCL_COMM_NULL;
          std::vector<int> due;
          for (int r = 0; r < 3; ++r)
            if (r != victim)
              due.push_back(r);
            else if (!shrinks)
              due.push_back(3);
          if (shrinks) due.push_back(3);
          if (g.joins(process)) {
            whole = grown::join();
          } else {
            world = grown::begin_of(3);
            ready(world);
            GCCL_Result r = GCCL_SUCCESS;
            while (r == GCCL_SUCCESS) r = GCCL_Barrier(world);
            expect(r, GCCL_ERR_PEER_LOST, "barrier");
            if (shrinks) RANK_SUCCESS(GCCL_Comm_shrink(world, &comm));
            RANK_SUCCESS(GCCL_Comm_grow(shrinks ? comm : world, 1, grown::kEnoughMs, &whole));
          }
          if (!whole) return;
          grown::agree_on_numbers(whole, process, due);
          RANK_CHECK(grown::joined_of(whole) == std::set<int>{shrinks ? 2 : victim});
          grown::use(whole, 5);
          if (comm) RANK_SUCCESS(GCCL_Comm_free(&comm));
          if (world) GCCL_Comm_free(&world);
          grown::finish();
        });
        CHECK(running.await_ready(3));
        running.kill(victim, SIGKILL);
        grown::check_grown(g, running.wait(), {victim});
      }
}

// Two ranks admit one process, which is killed so long after it has asked; then another one joins.
void kill_one_that_joins(const std::string& backends, int late_us) {
  Grown g({.size = 4, .backends = backends}, 2);
  const std::vector<End> ends = run(g.job, [&](int process) {
    GCCL_Comm comm = GCCL_COMM_NULL;
    if (g.joins(process)) {
      while (!std::filesystem::exists(g.folder.path / "store.join")) ::usleep(100);
      if (process == 2) {
        ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
        const itimerval after = {{0, 0}, {0, late_us}};
        RANK_CHECK(::setitimer(ITIMER_REAL, &after, nullptr) == 0);
      } else {
        ::usleep(100000);  // it is dead by then
      }
      comm = grown::join();
      // The first one may have become a member before it was killed.
      double mine = process, sum = 0;
      for (GCCL_Result r = GCCL_SUCCESS; process == 2 && r == GCCL_SUCCESS;)
        r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
    } else {
      GCCL_Comm world = grown::begin_of(2);
      ::usleep(30000);
      RANK_SUCCESS(GCCL_Comm_grow(world, 1, 10000, &comm));
      double mine = process, sum = 0;
      // 0 + 1 + 3 where the second one has joined at once; else this ends with the first one.
      GCCL_Result r = GCCL_SUCCESS;
      while (r == GCCL_SUCCESS && sum != 4) r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
      if (r != GCCL_SUCCESS) {
        expect(r, GCCL_ERR_PEER_LOST, "all-reduce");
        GCCL_Comm whole = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_grow(comm, 1, 10000, &whole));
        comm = whole;
        RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm));
      }
    }
    if (process == 3) {
      double mine = process, sum = 0;
      RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm));
      RANK_CHECK(sum == 4);
    }
    grown::agree_on_numbers(comm, process, {0, 1, 3});
    grown::use(comm, 8, 12);
    GCCL_Finalize();
  });
  CHECK(ends[2].signal == SIGKILL);
  grown::check_grown(g, ends, {2});
}

TEST_CASE("a process that is killed while it joins is left out, at whatever moment, and another one joins") {
  for (const char* backends : {"shm", "tcp"})
    for (int late_us = 300; late_us < 60000; late_us = late_us * 5 / 4) kill_one_that_joins(backends, late_us);
}

TEST_CASE("a process that does not fit learns why, and another one joins") {
  struct Wrong {
    const char* name;
    const char* value;
    GCCL_Result due;
    std::vector<const char*> texts;
  };
  const std::vector<Wrong> all = {
      {"GCCL_SECRET", "a guess", GCCL_ERR_AUTHENTICATION, {"the peer has another secret", "set the same GCCL_SECRET"}},
      {"GCCL_ALGORITHM",
       "allreduce=ring",
       GCCL_ERR_INVALID_USAGE,
       {"GCCL_ALGORITHM differs", "this process has \"allreduce=ring\""}},
      {"GCCL_CHECK", "1", GCCL_ERR_INVALID_USAGE, {"GCCL_CHECK differs: the members have"}},
      {"GCCL_BACKENDS", "tcp", GCCL_ERR_INVALID_USAGE, {"GCCL_BACKENDS", "\"shm,tcp\""}},
  };
  for (const bool over_tcp : {false, true})
    for (const Wrong& wrong : all) {
      Job job{.size = 4, .backends = "shm,tcp"};
      job.environment["GCCL_SECRET"] = "of these alone";
      if (over_tcp) job.environment["GCCL_STORE"] = local_tcp_store();
      Grown g(job, 2);
      grown::check_grown(g, run(g.job, [&](int process) {
                           GCCL_Comm all_of_them = GCCL_COMM_NULL;
                           if (process == 2) {
                             ::setenv(wrong.name, wrong.value, 1);
                             GCCL_Comm none = GCCL_COMM_NULL;
                             expect(GCCL_Join(&none, nullptr), wrong.due, wrong.name);
                             RANK_CHECK(none == GCCL_COMM_NULL);
                             for (const char* text : wrong.texts) expect_text(text, wrong.name);
                             return;
                           }
                           if (process == 3) {
                             ::usleep(700000);  // later than the other
                             all_of_them = grown::join();
                           } else {
                             GCCL_Comm world = grown::begin_of(2);
                             RANK_SUCCESS(GCCL_Comm_grow(world, 1, grown::kEnoughMs, &all_of_them));
                           }
                           grown::agree_on_numbers(all_of_them, process, {0, 1, 3});
                           grown::use(all_of_them, 6, 12);
                           grown::finish();
                         }));
    }
}

TEST_CASE("ranks that grow by different arguments all learn which differ, and on which ranks") {
  struct Differs {
    int most[3];
    const char* text;
  };
  const Differs all[] = {
      {{1, 1, 2}, "most differs: 1 on rank 0, rank 1; 2 on rank 2; expected the same"},
      {{3, 1, 2}, "most differs: 1 on rank 1; 2 on rank 2; 3 on rank 0; expected the same"},
  };
  for (const char* backends : {"shm", "tcp"})
    for (const Differs& differs : all) {
      Grown g({.size = 3, .backends = backends}, 3);
      grown::check_grown(g, run(g.job, [&](int process) {
                           GCCL_Comm world = grown::begin_of(3), none = GCCL_COMM_NULL;
                           const auto began = Clock::now();
                           expect(GCCL_Comm_grow(world, differs.most[process], 4000, &none), GCCL_ERR_MISMATCH, "grow");
                           expect_text(differs.text, "grow");
                           RANK_CHECK(none == GCCL_COMM_NULL);
                           RANK_CHECK(seconds_since(began) < 4);
                           grown::finish();
                         }));
    }
}

// As where each waits for what is left of its own time limit.
TEST_CASE("ranks that would wait for different times wait for the shortest, whichever of them admits") {
  for (int shortest = 0; shortest < 3; ++shortest) {
    Grown g({.size = 3, .backends = "shm"}, 3);
    grown::check_grown(g, run(g.job, [&](int process) {
                         GCCL_Comm world = grown::begin_of(3), same = GCCL_COMM_NULL;
                         const auto began = Clock::now();
                         const std::int64_t longer = process == 0 ? std::numeric_limits<std::int64_t>::max() : 20000;
                         RANK_SUCCESS(GCCL_Comm_grow(world, 1, process == shortest ? 1500 : longer, &same));
                         RANK_CHECK(seconds_since(began) >= 1.2);
                         RANK_CHECK(seconds_since(began) < 10);
                         RANK_CHECK(grown::joined_of(same).empty());
                         RANK_CHECK(size_of(same) == 3);
                         RANK_SUCCESS(GCCL_Comm_free(&same));
                         grown::finish();
                       }));
  }
}

TEST_CASE("a rank may wait for processes as long as it likes, also where its calls have a time limit") {
  for (const std::int64_t wait_ms : {std::int64_t(10'000'000'000'000), std::numeric_limits<std::int64_t>::max()}) {
    Grown g({.size = 3, .backends = "shm"}, 2);
    grown::check_grown(g, run(g.job, [&](int process) {
                         if (g.joins(process)) {
                           ::usleep(300000);
                           grown::agree_on_numbers(grown::join(), process, {0, 1, 2});
                           return grown::finish();
                         }
                         GCCL_Comm world = grown::begin_of(2), grows = GCCL_COMM_NULL;
                         RANK_SUCCESS(GCCL_Comm_set_timeout(world, 5000));
                         RANK_SUCCESS(GCCL_Comm_grow(world, 1, wait_ms, &grows));
                         grown::agree_on_numbers(grows, process, {0, 1, 2});
                         grown::finish();
                       }));
  }
}

TEST_CASE("a process that nobody admits gives up in its time") {
  check({.size = 1, .environment = {{"GCCL_JOIN_TIMEOUT_MS", "700"}}}, [](int) {
    GCCL_Comm none = GCCL_COMM_NULL;
    const auto began = Clock::now();
    expect(GCCL_Join(&none, nullptr), GCCL_ERR_TIMEOUT, "join");
    expect_text("no member admitted this process within 700 ms (GCCL_JOIN_TIMEOUT_MS) at file://", "join");
    RANK_CHECK(seconds_since(began) >= 0.7);
    RANK_CHECK(seconds_since(began) < 10);
    for (const char* one : {"1", "01"}) {
      ::setenv("GCCL_JOIN", one, 1);
      expect(GCCL_Init(&none, nullptr), GCCL_ERR_TIMEOUT, "init");
    }
    ::unsetenv("GCCL_STORE");
    expect(GCCL_Join(&none, nullptr), GCCL_ERR_INVALID_ARGUMENT, "no store");
    expect_text("set GCCL_STORE", "no store");
  });
}

TEST_CASE("without a store, or a rank on its machine, growing is refused on all ranks alike") {
  check({.size = 1}, [](int) {
    ::unsetenv("GCCL_STORE");
    GCCL_Comm world = begin(), none = GCCL_COMM_NULL;
    expect(GCCL_Comm_grow(world, 1, 0, &none), GCCL_ERR_NOT_SUPPORTED, "no store");
    expect_text("there is no store", "no store");
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("wrong arguments of growing are reported") {
  check({.size = 1}, [](int) {
    GCCL_Comm world = begin(), none = GCCL_COMM_NULL;
    int count = 0;
    expect(GCCL_Comm_grow(world, 0, 0, &none), GCCL_ERR_INVALID_ARGUMENT, "most");
    expect(GCCL_Comm_grow(world, 1, -1, &none), GCCL_ERR_INVALID_ARGUMENT, "wait");
    expect(GCCL_Comm_grow(world, 1, 0, nullptr), GCCL_ERR_INVALID_ARGUMENT, "out");
    expect(GCCL_Join(nullptr, nullptr), GCCL_ERR_INVALID_ARGUMENT, "join");
    expect(GCCL_Comm_get_joined(world, nullptr, 1, &count), GCCL_ERR_INVALID_ARGUMENT, "ranks");
    expect(GCCL_Comm_get_joined(world, nullptr, -1, &count), GCCL_ERR_INVALID_ARGUMENT, "capacity");
    expect(GCCL_Comm_get_joined(world, nullptr, 0, nullptr), GCCL_ERR_INVALID_ARGUMENT, "count");
    RANK_SUCCESS(GCCL_Comm_get_joined(world, nullptr, 0, &count));
    RANK_CHECK(count == 0);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("ranks that call something else than growing get an error") {
  for (const bool agrees : {false, true}) {
    // That a barrier is waited for in vain is known where no other thread could enter it, and the thread sanitizer's
    // own count as others.
    if (!agrees && gccl::test::kSanitizerThreads) continue;
    check({.size = 2, .backends = "shm", .environment = {{"GCCL_TIMEOUT_MS", "20000"}}}, [agrees](int rank) {
      GCCL_Comm world = begin(), made = GCCL_COMM_NULL;
      std::uint64_t flags = 1;
      const GCCL_Result r = rank == 0 ? GCCL_Comm_grow(world, 1, 0, &made)
                            : agrees  ? GCCL_Comm_agree(world, &flags)
                                      : GCCL_Barrier(world);
      expect(r, GCCL_ERR_MISMATCH, "mixed");
      GCCL_Finalize();
    });
  }
}

TEST_CASE("an abort ends the wait for processes") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin(), made = GCCL_COMM_NULL;
      std::thread other;
      if (rank == 1)
        other = std::thread([&] {
          ::usleep(500000);
          RANK_SUCCESS(GCCL_Abort(world, 7));
        });
      const auto began = Clock::now();
      RANK_CHECK(GCCL_Comm_grow(world, 1, grown::kEnoughMs, &made) != GCCL_SUCCESS);
      RANK_CHECK(seconds_since(began) < 20);
      RANK_CHECK(made == GCCL_COMM_NULL);
      if (other.joinable()) other.join();
      GCCL_Finalize();
    });
}

TEST_CASE("a process that can receive no datagrams does not join, and says why") {
  Grown g({.size = 2, .backends = "shm", .environment = {{"GCCL_SECRET", "theirs"}}}, 1);
  check(g.job, [&](int process) {
    GCCL_Comm comm = GCCL_COMM_NULL, made = GCCL_COMM_NULL;
    if (process == 1) {
      ::setenv("GCCL_ADDRESS", "192.0.2.1", 1);  // of no machine
      expect(GCCL_Join(&comm, nullptr), GCCL_ERR_NOT_SUPPORTED, "join");
      expect_text("192.0.2.1", "join");
      expect_text("datagrams", "join");
      return;
    }
    comm = grown::begin_of(1);
    RANK_SUCCESS(GCCL_Comm_grow(comm, 1, 1000, &made));
    RANK_CHECK(size_of(made) == 1);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// With so many descriptors more than it has: the new communicator lacks one thing after the other.
TEST_CASE("a member that is short of descriptors while a communicator grows gets an error, as all do") {
  for (const char* backends : {"shm", "tcp"})
    for (int more = 0; more < 14; ++more) {
      Grown g({.size = 3, .backends = backends}, 2);
      g.job.environment["GCCL_JOIN_TIMEOUT_MS"] = "2000";
      g.job.environment["GCCL_LOG"] = "0";
      CAPTURE(more);
      check(g.job, [&](int process) {
        GCCL_Comm comm = GCCL_COMM_NULL, made = GCCL_COMM_NULL;
        GCCL_Result result = GCCL_SUCCESS;
        if (g.joins(process)) {
          result = GCCL_Join(&made, nullptr);
        } else {
          comm = grown::begin_of(2);
          RANK_SUCCESS(GCCL_Barrier(comm));
          if (process == 1) {
            rlimit limit;
            RANK_CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
            const int next = ::dup(0);
            ::close(next);
            limit.rlim_cur = rlim_t(next + more);
            RANK_CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
          }
          result = GCCL_Comm_grow(comm, 1, 5000, &made);
        }
        if (result == GCCL_SUCCESS) {
          std::int32_t mine = 1, sum = 0;
          result = GCCL_Allreduce(&mine, &sum, 1, GCCL_INT32, GCCL_SUM, made);
          if (result == GCCL_SUCCESS) RANK_CHECK(sum == size_of(made));
        }
        if (result != GCCL_SUCCESS) RANK_CHECK(!std::string(GCCL_Last_error()).empty());
        GCCL_Finalize();
      });
    }
}
