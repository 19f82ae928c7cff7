// Random jobs that grow while processes are killed at random moments: those that join, and members. Those that are left
// go on with each other, and nobody waits for the dead.
//
// Environment: GCCL_TEST_GROW_SEEDS (how many, 8) and GCCL_TEST_GROW_SEED (the first, 1).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/from_environment.hpp"
#include "tests/support/grown_job.hpp"

using namespace ranks;

namespace {

using grown::Grown;

// Some members lose one first or not; then all grow, while some of them and of those that join are killed.
struct GrowTimeline {
  unsigned seed = 0;
  Job job;
  int members = 2;
  std::set<int> first;      // killed before they grow, which the others notice
  std::set<int> meanwhile;  // killed while they grow
  std::vector<int> after;   // microseconds after they begin to, for each process
  bool shrinks = false;     // before they grow

  explicit GrowTimeline(unsigned s) : seed(s) {
    std::mt19937 random(s * 7919);
    const auto below = [&](int n) { return int(random() % unsigned(n)); };
    members = 2 + below(3);
    const int joining = 1 + below(3);
    job.size = members + joining;
    job.backends = below(2) ? "shm" : "tcp";
    if (below(3) == 0) {
      job.backends = "shm,tcp";
      for (int r = 0; r < job.size; ++r) job.nodes.push_back(below(2));
      job.environment["GCCL_DETECTION_MS"] = "2000";
    }
    job.limit_s = 100;
    if (members > 2 && below(2)) first.insert(below(members));
    shrinks = below(2);
    // At least one member goes on, and by quorum or as the system sees all.
    for (int kills = below(3); kills > 0; --kills) {
      const int who = below(job.size);
      if (who < members && int(first.size()) + members_in(meanwhile) + 1 >= members) continue;
      if (!first.contains(who)) meanwhile.insert(who);
    }
    for (int r = 0; r < job.size; ++r) after.push_back(below(3) ? below(60000) : below(900000));
  }
  int members_in(const std::set<int>& who) const {
    return int(std::ranges::count_if(who, [&](int w) { return w < members; }));
  }
  bool dies(int process) const { return first.contains(process) || meanwhile.contains(process); }
  std::string text() const {
    std::string t = "GCCL_TEST_GROW_SEED=" + std::to_string(seed) + " GCCL_TEST_GROW_SEEDS=1: " + describe(job) + ", " +
                    std::to_string(members) + " members; killed first:";
    for (const int w : first) t += " " + std::to_string(w);
    t += "; while they grow:";
    for (const int w : meanwhile)
      t += " " + std::to_string(w) + " after " + std::to_string(after[std::size_t(w)]) + " us";
    return t;
  }
};

void killed_after(int microseconds) {
  ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
  const itimerval after = {{0, 0}, {0, std::max(microseconds, 1)}};
  RANK_CHECK(::setitimer(ITIMER_REAL, &after, nullptr) == 0);
}

// All of a communicator call this until nobody fails any more: the communicator that they have then.
GCCL_Comm settle(GCCL_Comm comm) {
  for (int round = 0; round < 8 && comm; ++round) {
    GCCL_Result r = GCCL_SUCCESS;
    // For as long as the last one may still be killed.
    const auto began = Clock::now();
    std::int32_t on = 1;
    while (r == GCCL_SUCCESS && on > 0) {
      std::int32_t mine = seconds_since(began) < 1.2, any = 0;
      r = GCCL_Allreduce(&mine, &any, 1, GCCL_INT32, GCCL_MAX, comm);
      on = any;
      ::usleep(1000);  // which leaves the processors to other tests
    }
    std::uint64_t good = r == GCCL_SUCCESS;
    if (GCCL_Comm_agree(comm, &good) == GCCL_SUCCESS && good) return comm;
    GCCL_Comm smaller = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Comm_shrink(comm, &smaller));
    comm = smaller;
  }
  report("ranks fail and fail");
  return GCCL_COMM_NULL;
}

void live(const GrowTimeline& t, const Grown& g, int process) {
  GCCL_Comm comm = GCCL_COMM_NULL;
  if (g.joins(process)) {
    std::printf("joins\n");
    std::fflush(stdout);
    if (t.meanwhile.contains(process)) killed_after(t.after[std::size_t(process)]);
    RANK_SUCCESS(GCCL_Join(&comm, nullptr));
  } else {
    GCCL_Comm world = grown::begin_of(t.members);
    RANK_SUCCESS(GCCL_Barrier(world));
    if (!t.first.empty()) {
      // The first of them to go lets the others go when all have left what was before.
      const int first = *t.first.begin();
      leave_before(world, first);
      char go = 0;
      for (const int other : t.first) {
        if (other != first && process == first) (void)GCCL_Send(&go, 1, GCCL_INT8, other, world);
        if (other != first && process == other) (void)GCCL_Recv(&go, 1, GCCL_INT8, first, world);
      }
      if (t.first.contains(process)) ::kill(::getpid(), SIGKILL);
      GCCL_Result r = GCCL_SUCCESS;
      while (r == GCCL_SUCCESS) r = GCCL_Barrier(world);
      expect(r, GCCL_ERR_PEER_LOST, "barrier");
      if (t.shrinks) {
        GCCL_Comm smaller = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_shrink(world, &smaller));
        world = smaller;
      }
    }
    if (t.meanwhile.contains(process)) killed_after(t.after[std::size_t(process)]);
    RANK_SUCCESS(GCCL_Comm_grow(world, t.job.size - t.members, 4000, &comm));
  }
  comm = settle(comm);
  if (!comm) return;
  // Some that join may have come too late, while one that was killed was still waited for; those that are here say so.
  std::vector<std::int32_t> who(std::size_t(size_of(comm)), -1);
  const std::int32_t mine = process;
  RANK_SUCCESS(GCCL_Allgather(&mine, who.data(), 1, GCCL_INT32, comm));
  std::set<int> present(who.begin(), who.end()), due;
  for (int r = 0; r < t.job.size; ++r)
    if (!t.dies(r)) due.insert(r);
  if (present != due) {
    std::string text = "there are processes";
    for (const int w : who) text += " " + std::to_string(w);
    report(text);
  }
  grown::use(comm, t.seed, 24);
  GCCL_Finalize();
}

}  // namespace

TEST_CASE("those that are left grow, whichever process is killed meanwhile") {
  const auto first = unsigned(gccl::test::from_environment("GCCL_TEST_GROW_SEED", 1)),
             seeds = unsigned(gccl::test::from_environment("GCCL_TEST_GROW_SEEDS", 8));
  MESSAGE("GCCL_TEST_GROW_SEED=" << first << " GCCL_TEST_GROW_SEEDS=" << seeds);
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    const GrowTimeline t(seed);
    const Grown g(t.job, t.members);
    const auto began = Clock::now();
    const std::vector<End> ends = run(g.job, [&](int process) { live(t, g, process); });
    bool good = true;
    for (std::size_t p = 0; p < ends.size(); ++p) {
      good &= t.dies(int(p)) ? ends[p].signal == SIGKILL || ends[p].good() : ends[p].good();
      good &= !ends[p].late;
    }
    CHECK_MESSAGE(good, t.text() << "\n" << texts(ends));
    if (std::getenv("GCCL_TEST_GROW_TIMES")) MESSAGE(t.text() << ": " << seconds_since(began) << " s");
  }
}
