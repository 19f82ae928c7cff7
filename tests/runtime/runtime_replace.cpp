// Communicators that replace ranks which are killed by processes that wait, or that were started again: the policies
// spare and rejoin. Random jobs, in which what each call returns is the same on all ranks.
//
// Environment: GCCL_TEST_REPLACE_SEEDS (how many, 6) and GCCL_TEST_REPLACE_SEED (the first, 1).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/grown_job.hpp"

using namespace ranks;

namespace {

using grown::Grown;

struct Replacing {
  unsigned seed = 0;
  Job job;
  int members = 2;
  std::vector<int> dies_at;  // step at which each process is killed, with a delay; -1: never
  std::vector<int> delay;    // in microseconds
  static constexpr int kSteps = 60;

  explicit Replacing(unsigned s) : seed(s) {
    std::mt19937 random(s * 104729);
    const auto below = [&](int n) { return int(random() % unsigned(n)); };
    members = 2 + below(3);
    job.size = members + below(4);
    job.backends = below(2) ? "shm" : "tcp";
    job.limit_s = 120;
    job.environment["GCCL_ON_FAILURE"] = "spare";
    if (below(3) == 0) job.environment["GCCL_CHECK"] = "1";
    int kills = 1 + below(std::min(3, job.size - 1));
    for (int p = 0; p < job.size; ++p) {
      const bool dies = kills > 0 && below(job.size) < 2;
      kills -= dies;
      dies_at.push_back(dies ? 1 + below(kSteps - 10) : -1);
      delay.push_back(below(2) ? 0 : below(3000));
    }
    if (std::ranges::count(dies_at, -1) == job.size) dies_at[0] = 5;
    // One of those that start lives, whatever comes.
    if (std::all_of(dies_at.begin(), dies_at.begin() + members, [](int at) { return at >= 0; })) dies_at[1] = -1;
  }
  std::string text() const {
    std::string t = "GCCL_TEST_REPLACE_SEED=" + std::to_string(seed) + " GCCL_TEST_REPLACE_SEEDS=1: " + describe(job) +
                    ", " + std::to_string(members) + " members; killed at steps:";
    for (const int at : dies_at) t += " " + std::to_string(at);
    return t;
  }
};

// One process's steps: random collectives, each made anew by all when ranks were replaced.
class ReplacingSteps {
 public:
  ReplacingSteps(const Replacing& t, const Grown& g, int process) : t_(t), g_(g), process_(process) {}

  void run() {
    if (g_.joins(process_)) {
      ::setenv("GCCL_JOIN", "1", 1);
      ::unsetenv("GCCL_RANK");
      ::setenv("GCCL_JOIN_TIMEOUT_MS", "6000", 1);
      const GCCL_Result r = GCCL_Init(&comm_, nullptr);
      if (r == GCCL_ERR_TIMEOUT) return;  // nobody needed it
      RANK_SUCCESS(r);
    } else {
      comm_ = grown::begin_of(t_.members);
    }
    if (!comm_) return;
    RANK_SUCCESS(GCCL_On_failure(comm_, &ReplacingSteps::hear, this));
    std::int32_t step = 0;
    ask();
    if (g_.joins(process_)) {
      RANK_CHECK(grown::joined_of(comm_).contains(rank_));
      step = catch_up(-1);
    }
    while (step < Replacing::kSteps && !any_reported()) {
      if (t_.dies_at[std::size_t(process_)] == step) die();
      const GCCL_Result r = call(step);
      if (r == GCCL_SUCCESS) {
        ++step;
      } else if (r == GCCL_ERR_RANKS_CHANGED) {
        ask();
        step = catch_up(step);
      } else {
        report("step " + std::to_string(step) + " returned " + std::to_string(int(r)) + ": " + GCCL_Last_error());
      }
    }
    RANK_CHECK(heard_lost_ == heard_recovered_);
    GCCL_Finalize();  // says so where ranks fail meanwhile
  }

 private:
  static void hear(GCCL_Comm, const GCCL_Failure* f, void* self) {
    ReplacingSteps& s = *static_cast<ReplacingSteps*>(self);
    if (f->stage == GCCL_FAILURE_NOTICED) {
      ++s.heard_lost_;
    } else {
      ++s.heard_recovered_;
      RANK_CHECK(f->count >= 0);
      RANK_CHECK(f->size <= s.t_.members);
      RANK_CHECK(f->rank < f->size);
    }
  }
  void die() const {
    const int us = t_.delay[std::size_t(process_)];
    if (us == 0) ::kill(::getpid(), SIGKILL);
    ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
    const itimerval after = {{0, 0}, {0, us}};
    RANK_CHECK(::setitimer(ITIMER_REAL, &after, nullptr) == 0);
  }
  void ask() {
    size_ = size_of(comm_);
    rank_ = rank_of(comm_);
  }

  // Those that were there are all at one step; those that have just come say -1, and they are the new ones on all
  // ranks.
  std::int32_t catch_up(std::int32_t step) {
    for (int tries = 0; tries < 10 && !any_reported(); ++tries) {
      struct Said {
        std::int32_t step = -2, joined = 0;
      };
      Said mine{.step = step};
      for (const int r : grown::joined_of(comm_)) mine.joined |= 1 << r;
      auto all = std::vector<Said>(std::size_t(size_));
      const GCCL_Result r = GCCL_Allgather(&mine, all.data(), 2, GCCL_INT32, comm_);
      if (r == GCCL_ERR_RANKS_CHANGED) {
        ask();
        continue;
      }
      RANK_SUCCESS(r);
      const std::int32_t here = std::ranges::max_element(all, {}, &Said::step)->step;
      RANK_CHECK(here >= 0);
      for (std::size_t i = 0; i < all.size(); ++i) {
        RANK_CHECK(all[i].step == ((mine.joined >> i & 1) != 0 ? -1 : here));
        RANK_CHECK(all[i].joined == mine.joined);
      }
      return here;
    }
    report("handed back too often");
    return Replacing::kSteps;
  }

  GCCL_Result call(std::int32_t step) {
    std::mt19937 random(t_.seed * 1000 + unsigned(step));
    const unsigned kind = random() % 6;
    const std::size_t count = std::vector<std::size_t>{1, 60, 3000, 50000}[random() % 4];
    const auto n = std::size_t(size_);
    const double mine = rank_ + 1.0, sum = double(n * (n + 1)) / 2;
    std::vector<double> x(count, mine), y(count, -1);
    const auto all_are = [](const std::vector<double>& v, double due) {
      return std::ranges::all_of(v, [due](double e) { return e == due; });
    };
    switch (kind) {
      case 0: return GCCL_Barrier(comm_);
      case 1: {
        const GCCL_Result r = GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, comm_);
        if (r == GCCL_SUCCESS) RANK_CHECK(all_are(y, sum));
        return r;
      }
      case 2: {
        const GCCL_Result r = GCCL_Allreduce(GCCL_IN_PLACE, x.data(), count, GCCL_FLOAT64, GCCL_SUM, comm_);
        RANK_CHECK(all_are(x, r == GCCL_SUCCESS ? sum : mine));  // else as it was
        return r;
      }
      case 3: {
        y.assign(count * n, -1);
        const GCCL_Result r = GCCL_Allgather(x.data(), y.data(), count, GCCL_FLOAT64, comm_);
        for (std::size_t i = 0; r == GCCL_SUCCESS && i < y.size(); ++i) RANK_CHECK(y[i] == double(i / count) + 1);
        return r;
      }
      case 4: {
        x.assign(count * n, mine);
        const GCCL_Result r = GCCL_Reduce_scatter(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, comm_);
        if (r == GCCL_SUCCESS) RANK_CHECK(all_are(y, sum));
        return r;
      }
      default: {
        const int root = int(random() % unsigned(n));
        const GCCL_Result r = GCCL_Broadcast(x.data(), count, GCCL_FLOAT64, root, comm_);
        if (r == GCCL_SUCCESS) RANK_CHECK(all_are(x, root + 1.0));
        return r;
      }
    }
  }

  const Replacing& t_;
  const Grown& g_;
  const int process_;
  GCCL_Comm comm_ = GCCL_COMM_NULL;
  int size_ = 0, rank_ = 0, heard_lost_ = 0, heard_recovered_ = 0;
};

unsigned replace_setting(const char* name, unsigned otherwise) {
  const char* value = std::getenv(name);
  return value ? unsigned(std::strtoul(value, nullptr, 10)) : otherwise;
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
      RANK_SUCCESS(GCCL_Barrier(comm));
      if (victims.contains(process)) {
        std::printf("ready\n");
        std::fflush(stdout);
      }
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
  for (const int v : victims) CHECK(running.await(v, "ready\n"));
  for (const int v : victims) running.kill(v, SIGKILL);
  return running.wait();
}

}  // namespace

TEST_CASE("random jobs replace ranks that are killed, and all go on with the same call") {
  const unsigned first = replace_setting("GCCL_TEST_REPLACE_SEED", 1);
  const unsigned seeds = replace_setting("GCCL_TEST_REPLACE_SEEDS", 6);
  MESSAGE("GCCL_TEST_REPLACE_SEED=" << first << " GCCL_TEST_REPLACE_SEEDS=" << seeds);
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    const Replacing t(seed);
    const Grown g(t.job, t.members);
    const std::vector<End> ends = run(g.job, [&](int process) { ReplacingSteps(t, g, process).run(); });
    bool good = true;
    for (std::size_t p = 0; p < ends.size(); ++p)
      good &= ends[p].good() || (t.dies_at[p] >= 0 && ends[p].signal == SIGKILL);
    CHECK_MESSAGE(good, t.text() << "\n" << texts(ends));
  }
}

TEST_CASE("with the policy spare the others keep their numbers, and the new rank has the one that was lost") {
  for (const char* backends : {"shm", "tcp"})
    for (const int victim : {0, 1, 2}) {
      Grown g({.size = 4, .backends = backends, .environment = {{"GCCL_ON_FAILURE", "spare"}}}, 3);
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
  Grown g({.size = 4, .backends = "tcp", .environment = {{"GCCL_ON_FAILURE", "spare"}}}, 3);
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
        RANK_SUCCESS(GCCL_Barrier(comm));
        if (process == 1) std::printf("ready\n"), std::fflush(stdout);
        GCCL_Result r = GCCL_SUCCESS;
        while (r == GCCL_SUCCESS) r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
        expect(r, GCCL_ERR_RANKS_CHANGED, "all-reduce");
      }
      RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm));
      RANK_CHECK(sum == (comes_back ? 3 : 2));
      RANK_CHECK(rank_of(comm) == (process == 4 ? 1 : process == 2 && !comes_back ? 1 : process));
      GCCL_Finalize();
    });
    CHECK(running.await(1, "ready\n"));
    running.kill(1, SIGKILL);
    const std::vector<End> ends = running.wait();
    std::filesystem::remove(g.folder.path / "refused");
    grown::check_grown(g, ends, {1});
  }
}

// A barrier that all others have entered succeeds, and the next call is handed back: so the new rank's first call is
// the one after that, which the next recovery relies on.
TEST_CASE("ranks are replaced in a barrier, then in an all-reduce, and all go on with the same call each time") {
  for (const char* backends : {"shm", "tcp"}) {
    Grown g({.size = 5, .backends = backends, .environment = {{"GCCL_ON_FAILURE", "spare"}}}, 3);
    Running running(g.job, [&](int process) {
      GCCL_Comm comm = GCCL_COMM_NULL;
      const auto say = [](const char* what) {
        std::printf("%s\n", what);
        std::fflush(stdout);
      };
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
        RANK_SUCCESS(GCCL_Barrier(comm));
        if (process == 1) say("first");
        while (r == GCCL_SUCCESS) r = GCCL_Barrier(comm);
        expect(r, GCCL_ERR_RANKS_CHANGED, "barrier");
      }
      if (process < 4) {
        RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm));
        RANK_CHECK(sum == 3);
        if (process == 2) say("second");
        for (r = GCCL_SUCCESS; r == GCCL_SUCCESS;) r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
        expect(r, GCCL_ERR_RANKS_CHANGED, "all-reduce");
      }
      grown::agree_on_numbers(comm, process, {0, 3, 4});
      RANK_CHECK(grown::joined_of(comm) == std::set<int>{2});
      grown::use(comm, 9, 12);
      GCCL_Finalize();
    });
    CHECK(running.await(1, "first\n"));
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
    Grown g({.size = 4, .backends = backends, .environment = {{"GCCL_ON_FAILURE", "spare"}}}, 3);
    keep_the_state(g, 1, 0, -1, {});
  }
}

TEST_CASE("a rank that has joined is new until a call has succeeded, however often the others recover before") {
  for (const char* backends : {"shm", "tcp"}) {
    {
      INFO("nobody joins in the second recovery");
      Grown g({.size = 4, .backends = backends, .environment = {{"GCCL_ON_FAILURE", "spare"}}}, 3);
      keep_the_state(g, 0, -1, 1, {0});
    }
    {
      INFO("another one joins in the second recovery");
      Grown g({.size = 5, .backends = backends, .environment = {{"GCCL_ON_FAILURE", "spare"}}}, 3);
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
