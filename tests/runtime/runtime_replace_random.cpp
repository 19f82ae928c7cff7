// Random jobs of communicators that replace ranks which are killed: what each call returns is the same on all ranks.
//
// Environment: GCCL_TEST_REPLACE_SEEDS (how many, 6) and GCCL_TEST_REPLACE_SEED (the first, 1).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/from_environment.hpp"
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

}  // namespace

TEST_CASE("random jobs replace ranks that are killed, and all go on with the same call") {
  const auto first = unsigned(gccl::test::from_environment("GCCL_TEST_REPLACE_SEED", 1)),
             seeds = unsigned(gccl::test::from_environment("GCCL_TEST_REPLACE_SEEDS", 6));
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
